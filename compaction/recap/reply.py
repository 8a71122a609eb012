"""Parse and validate a model's summary.

A recap is part of every later prompt, so the influence of hostile content on it is limited: an item is
one line, so it cannot look like a heading or another message; its sources are evicted messages; and every
identifier in it occurs in the model's input, or consists of words that do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from compaction.errors import SummaryMalformed, SummaryTooLong
from compaction.messages import JSON, Message, Text, ToolCall, ToolResult
from compaction.recap.prompt import STANDING
from compaction.recap.values import Item, Mention, Recap, Status
from compaction.references import Kind, argument_text, kind_of, references, without_handles
from compaction.structured_output import Reply, answer_of
from compaction.tokens import TokenCounter

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
    reader = _Reader(source)
    recap = reader.recap(answer_of(reply))
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
        _keys(data, "decisions", "entities", "facts", "open_items")
        return Recap(
            first_turn=self._source.first_turn,
            last_turn=self._source.last_turn,
            decisions=_each(data["decisions"], self._decision),
            entities=_each(data["entities"], self._entity),
            facts=_each(data["facts"], self._fact),
            open_items=_each(data["open_items"], self._open_item),
        )

    def _decision(self, data: Mapping[str, JSON]) -> Item | None:
        _keys(data, "text", "status", "sources")
        status = None if data["status"] == STANDING else _status(data["status"])
        return self._item(data["text"], data["sources"], status=status)

    def _fact(self, data: Mapping[str, JSON]) -> Item | None:
        _keys(data, "text", "sources")
        return self._item(data["text"], data["sources"])

    def _open_item(self, data: Mapping[str, JSON]) -> Item | None:
        _keys(data, "text", "status", "sources")
        return self._item(data["text"], data["sources"], status=_status(data["status"]))

    def _entity(self, data: Mapping[str, JSON]) -> Item | None:
        _keys(data, "name", "notes", "names", "sources")
        sources = self._sources(data["sources"])
        last = max(sources, default=0)
        notes = (self._line(note) for note in _list(data["notes"], str))
        names = dict.fromkeys(self._line(name) for name in _list(data["names"], str))
        return self._item(
            data["name"],
            data["sources"],
            notes=tuple(filter(_has_content, notes)),
            mentions=tuple(
                Mention(name=name, last=last, own=last, own_count=1) for name in names if _has_content(name)
            ),
        )

    def _item(self, text: JSON, sources: JSON, **fields: Any) -> Item | None:
        """Return an item, or None if nothing is left of its text."""
        line = self._line(_string(text))
        if not _has_content(line):
            return None
        return Item(text=line, sources=self._sources(sources), **fields)

    def _sources(self, sources: JSON) -> tuple[int, ...]:
        return tuple(sorted(self._source.positions.intersection(_list(sources, int))))

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


def _mapping(data: JSON) -> Mapping[str, JSON]:
    if not isinstance(data, dict):
        raise SummaryMalformed(f"expected an object in the answer, got {type(data).__name__}")
    return data


def _keys(data: Mapping[str, JSON], *names: str) -> None:
    if set(data) != set(names):
        raise SummaryMalformed(f"expected the fields {', '.join(names)} in an object of the answer")


def _each(data: JSON, read: Callable[[Mapping[str, JSON]], Item | None]) -> tuple[Item, ...]:
    items = (read(_mapping(entry)) for entry in _list(data, dict))
    return tuple({item.text: item for item in items if item is not None}.values())


def _list(data: JSON, kind: type) -> list[JSON]:
    if not isinstance(data, list) or not all(type(entry) is kind for entry in data):
        raise SummaryMalformed(f"expected a list of {kind.__name__} in the answer")
    return data


def _string(data: JSON) -> str:
    if not isinstance(data, str):
        raise SummaryMalformed(f"expected a string in the answer, got {type(data).__name__}")
    return data


def _status(data: JSON) -> Status:
    try:
        return Status(data)
    except ValueError as error:
        raise SummaryMalformed("the answer has an unknown status") from error
