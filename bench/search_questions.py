"""Questions for `bench.search`: those of LoCoMo, and sentences of recorded sessions that repeat a fact."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.transcripts import Transcript
from compaction.messages import Message, Role, Text
from compaction.recap.statements import facts
from importers.base import ImportedMessage, ImportedSession, ImportedTurn

#: A fact yields a question if its last mention is this many messages earlier and few messages mention it.
_AGO, _MOST_MENTIONS = 12, 3
#: Number of words of a question without its fact.
_LEAST_WORDS, _MOST_WORDS = 5, 40

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"\w+")
_SYNTAX = re.compile(r'"|(?<!\w)-|(?<=\w):(?=\S)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query, and the positions of its evidence among the messages before `before`."""

    text: str
    evidence: frozenset[int]
    before: int | None = None


def locomo(file: Path) -> Iterator[tuple[ImportedSession, list[Question]]]:
    """Yield the conversations of a file in the format of LoCoMo with their questions."""
    for number, sample in enumerate(json.loads(file.read_text())):
        session, positions = _conversation(f"conversation-{number}", sample["conversation"])
        found = (
            (item["question"], frozenset(positions[name] for name in item["evidence"] if name in positions))
            for item in sample["qa"]
        )
        yield session, [Question(text=text, evidence=evidence) for text, evidence in found if evidence]


def _conversation(name: str, value: dict[str, Any]) -> tuple[ImportedSession, dict[str, int]]:
    """Return a conversation as a session, and the position of each message by its id."""
    parts = sorted((int(key.removeprefix("session_")), key) for key in value if key[8:].isdigit())
    lines = [line for _, key in parts for line in value[key]]
    roles = {value["speaker_a"]: "user", value["speaker_b"]: "assistant"}
    turns = [
        ImportedTurn(
            messages=[
                ImportedMessage(
                    body={"role": roles[line["speaker"]], "content": f"{line['speaker']}: {line['text']}"},
                    source_id=line["dia_id"],
                )
            ]
        )
        for line in lines
    ]
    positions = {line["dia_id"]: position for position, line in enumerate(lines)}
    return ImportedSession(external_id=name, agent="bench", format="openai", turns=turns), positions


def repeated_facts(transcript: Transcript) -> Iterator[Question]:
    """Yield sentences that repeat a figure, date or name of much earlier messages, without that fact."""
    mentions: dict[str, list[int]] = {}
    for n, message in enumerate(transcript.messages):
        if message.role in (Role.USER, Role.ASSISTANT):
            for sentence in _SENTENCE.split(_prose(message)):
                yield from _questions_of(sentence, n, mentions)
        for fact in facts(message.text):
            mentions.setdefault(fact, []).append(n)


def _questions_of(sentence: str, n: int, mentions: dict[str, list[int]]) -> Iterator[Question]:
    for fact in sorted(facts(sentence)):
        known = mentions.get(fact, [])
        rest = re.sub(re.escape(fact), " ", sentence, flags=re.IGNORECASE)
        words = len(_WORD.findall(rest))
        is_asked = known and known[-1] <= n - _AGO and len(known) <= _MOST_MENTIONS
        if is_asked and rest != sentence and _LEAST_WORDS <= words <= _MOST_WORDS:
            yield Question(text=_plain(rest), evidence=frozenset(known), before=n)


def _plain(text: str) -> str:
    """Remove characters that a query would parse as a phrase, an exclusion or a condition."""
    return " ".join(_SYNTAX.sub(" ", text).split())


def _prose(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))


class Bm25:
    """Plain BM25 over the words of messages, for comparison: no stemming, no identifiers, no neighbors."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._counts = [Counter(_WORD.findall(text.lower())) for text in texts]
        self._lengths = [counts.total() for counts in self._counts]

    def best(self, query: str, *, before: int | None, most: int) -> list[int]:
        """Return the positions of the best messages before a position."""
        counts = self._counts[:before]
        average = max(1.0, sum(self._lengths[:before]) / max(1, len(counts)))
        scores: Counter[int] = Counter()
        for word in set(_WORD.findall(query.lower())):
            found = [(at, each[word]) for at, each in enumerate(counts) if word in each]
            value = math.log(1 + (len(counts) - len(found) + 0.5) / (len(found) + 0.5))
            for at, count in found:
                norm = 1.2 * (0.25 + 0.75 * self._lengths[at] / average)
                scores[at] += value * count * 2.2 / (count + norm)
        return [at for at, _ in scores.most_common(most)]
