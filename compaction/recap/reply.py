"""Parse and validate a model's summary.

A recap is part of every later prompt, so the influence of hostile content on it is limited: an item is
one line, so it cannot look like a heading or another message; its sources are evicted messages; and every
identifier in it occurs in the model's input, or consists of words that do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from compaction.errors import SummaryMalformed, SummaryTooLong
from compaction.identifiers.extract import Kind, argument_text, kind_of, references, without_handles
from compaction.messages import JSON, Message, Text, ToolCall, ToolResult
from compaction.recap.prompt import SCHEMA, STANDING
from compaction.recap.values import Item, Mention, Recap, Status
from compaction.sizes.tokens import TokenCounter
from compaction.structured_output import Reply, answer_of, check

#: Replaces an identifier that the model invented.
REMOVED = "[…]"

_TURN = re.compile(r"t\d{1,7}", re.ASCII)
_WORD = re.compile(r"\w", re.ASCII)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
#: The words that names consist of.
_PARTS = re.compile(r"\w+", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Source:
    """The input of a summary. `positions` are the valid sources of its items."""

    text: str
    positions: frozenset[int]
    first_turn: int
    last_turn: int

    @classmethod
    def of(cls, evicted: Sequence[Message], previous: Recap | None = None, *others: str) -> Source:
        """Return the source of a summary. `others` are texts of the request besides messages and recap."""
        recap = [previous.render()] if previous else []
        items = [item for section in previous.sections().values() for item in section] if previous else []
        turns = [message.turn for message in evicted]
        first = previous.first_turn if previous else min(turns, default=0)
        return cls(
            text="\n".join((*others, *recap, *_texts(evicted))),
            positions=frozenset(m.position for m in evicted).union(*(item.sources for item in items)),
            first_turn=first,
            last_turn=max(turns, default=previous.last_turn if previous else first),
        )

    def contains(self, name: str) -> bool:
        """Whether the text contains `name`: as a word or (part of a) path, or at least each word of a name.

        Models qualify names (`Pool.limit`), join words (`end-to-end`, `open/closed`), change their case and
        write ranges of turns. Files, URLs, email addresses and numbers must occur unchanged.
        """
        if self._is_turn(name) or _find(name, self.text) >= 0:
            return True
        if name.isascii() and not _is_exact(name) and all(map(self._has_word, _PARTS.findall(name))):
            return True
        if name.isascii() or "://" in name:
            return False
        # In scripts without spaces, names and words are adjacent. The names are the ASCII parts.
        return all(map(self.contains, references(_NOT_ASCII.sub(" ", name))))

    def _has_word(self, word: str) -> bool:
        return self._is_turn(word) or (not word.isdecimal() and word.casefold() in self._words)

    def _is_turn(self, word: str) -> bool:
        return bool(_TURN.fullmatch(word)) and int(word[1:]) <= self.last_turn

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(_PARTS.findall(self.text.casefold()))


def summary_read(
    reply: Reply, *, source: Source, cap_tokens: int, counter: TokenCounter
) -> tuple[Recap, tuple[str, ...]]:
    """Return the model's recap, and the identifiers that were removed from it.

    Raises:
        SummaryRefused: the model declined.
        SummaryTooLong: the answer was cut off, or the recap's text takes more than `cap_tokens`.
        SummaryMalformed: the answer does not match the schema, or is empty.
    """
    answer = answer_of(reply)
    check(answer, SCHEMA)
    reader = _Reader(source)
    recap = reader.recap(answer)
    if not any(recap.sections().values()):
        raise SummaryMalformed("the recap is empty")
    tokens = counter.count(recap.render())
    if tokens > cap_tokens:
        raise SummaryTooLong(f"the recap takes {tokens} tokens, at most {cap_tokens} are allowed")
    return recap, tuple(reader.dropped)


class _Reader:
    """Converts JSON objects to items and collects the identifiers that it removes."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._known: dict[str, bool] = {}
        self.dropped: dict[str, None] = {}

    def recap(self, data: Mapping[str, JSON]) -> Recap:
        sections: dict[str, Any] = {name: _distinct(map(self._item, items)) for name, items in data.items()}
        return Recap(first_turn=self._source.first_turn, last_turn=self._source.last_turn, **sections)

    def _item(self, data: Mapping[str, JSON]) -> Item:
        """Return the item of any section. Only entities have a name instead of a text, notes and names."""
        sources = self._source.positions.intersection(data["sources"])
        status, last = data.get("status", STANDING), max(sources, default=0)
        names = dict.fromkeys(self._lines(data.get("names", ())))
        return Item(
            text=self._line(data["name"] if "name" in data else data["text"]),
            notes=tuple(self._lines(data.get("notes", ()))),
            mentions=tuple(Mention(name=name, last=last, own=last, own_count=1) for name in names),
            status=None if status == STANDING else Status(status),
            sources=tuple(sorted(sources)),
        )

    def _lines(self, texts: Iterable[str]) -> Iterable[str]:
        return filter(_has_content, map(self._line, texts))

    def _line(self, text: str) -> str:
        """Return `text` as one line, without handles and identifiers that the source does not contain.

        The recap adds the handles of replaced descriptors itself; any others come from an output.
        """
        line = without_handles(" ".join(text.split()), REMOVED)
        for name in sorted(references(line), key=len, reverse=True):
            if not self._is_known(name):
                line = self._without(name, line)
        return line

    def _is_known(self, name: str) -> bool:
        if name not in self._known:
            self._known[name] = self._source.contains(name)
        return self._known[name]

    def _without(self, name: str, line: str) -> str:
        while (at := _find(name, line)) >= 0:
            self.dropped[name] = None
            line = line[:at] + REMOVED + line[at + len(name) :]
        return line


def _texts(messages: Iterable[Message]) -> Iterable[str]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, Text | ToolResult):
                yield part.text
            elif isinstance(part, ToolCall):
                yield from (part.name, part.arguments, argument_text(part.arguments))


def _find(name: str, text: str) -> int:
    """Return the index of `name` in `text` without adjacent ASCII letters, digits or underscores, or -1."""
    at = text.find(name)
    while at >= 0:
        around = text[max(0, at - 1) : at] + text[at + len(name) : at + len(name) + 1]
        if not _WORD.search(around):
            return at
        at = text.find(name, at + 1)
    return -1


def _is_exact(name: str) -> bool:
    """Whether a name is wrong if it is not written exactly like this."""
    kind = kind_of(name)
    if kind is not Kind.PATH:
        return kind in (Kind.URL, Kind.EMAIL, Kind.NUMBER)
    return name[0] in "/~." or kind_of(name.rpartition("/")[2]) is Kind.PATH


def _has_content(line: str) -> bool:
    return any(map(str.isalnum, line.replace(REMOVED, "")))


def _distinct(items: Iterable[Item]) -> tuple[Item, ...]:
    """Return the last item with each text, without those whose text has no content."""
    return tuple({item.text: item for item in items if _has_content(item.text)}.values())
