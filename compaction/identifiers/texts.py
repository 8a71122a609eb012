"""The identifiers of each text, found once per process (see `compaction.identifiers.extract`).

A message appears in several plans before it is evicted: in the tail of one, in the middle of the next, again
when a model's summary is ready. Clients that send their whole history send every message again. Each text is
therefore scanned once, and its identifiers are kept by the hash of the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from compaction.identifiers.extract import argument_text, mentions
from compaction.messages import Message, Text, ToolCall, ToolResult

#: Number of names that a process keeps, about 10 MB. A prompt of 200,000 tokens mentions 20,000.
_KEPT = 1 << 19


class Names(NamedTuple):
    """The identifiers of a text in the order of their first mentions, and how often it mentions each."""

    names: tuple[str, ...]
    counts: tuple[int, ...]


#: Names by hash and length of the text. The length is negative if only the values of its JSON were searched.
#: The hash is keyed and has 64 bits, so collisions of texts of the same length are practically impossible.
_known: dict[tuple[int, int], Names] = {}
_kept = 0


def names_of(text: str) -> tuple[str, ...]:
    """Return the identifiers of `text` in the order of their first mentions."""
    return counted_names(text).names


def counted_names(text: str) -> Names:
    """Return the identifiers of `text` with the numbers of their mentions."""
    key = hash(text), len(text)
    known = _known.get(key)
    return _find(key, text) if known is None else known


def argument_names(arguments: str) -> tuple[str, ...]:
    """Return the identifiers in the strings and numbers of JSON arguments."""
    key = hash(arguments), -len(arguments)
    known = _known.get(key)
    return (_find(key, argument_text(arguments)) if known is None else known).names


def result_names(text: str) -> Names:
    """Return the identifiers of a tool output like `counted_names`, but not the keys of JSON.

    Keys occur in every output of a tool and therefore rank high, although no later call uses them.
    """
    if text.lstrip()[:1] not in ("{", "["):
        return counted_names(text)
    key = hash(text), -len(text)
    known = _known.get(key)
    return _find(key, argument_text(text)) if known is None else known


def message_references(*messages: Message) -> frozenset[str]:
    """Return the identifiers in texts, tool results and call arguments, but not in thinking."""
    return frozenset(chain.from_iterable(chain.from_iterable(map(_part_names, messages))))


def _part_names(message: Message) -> Iterator[tuple[str, ...]]:
    for part in message.parts:
        if isinstance(part, Text | ToolResult):
            yield names_of(part.text)
        elif isinstance(part, ToolCall):
            yield argument_names(part.arguments)


def forget() -> None:
    """Forget all texts, for benchmarks of a session's first plan."""
    global _kept
    _known.clear()
    _kept = 0


def _find(key: tuple[int, int], text: str) -> Names:
    global _kept
    if _kept > _KEPT:
        forget()
    counted = Counter(mentions(text))
    names = _known[key] = Names(tuple(counted), tuple(counted.values()))
    _kept += len(counted) + 1
    return names
