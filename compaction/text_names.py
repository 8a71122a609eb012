"""The identifiers of each text, found once per process (see `compaction.references`).

A message appears in several plans before it is evicted: in the tail of one, in the middle of the next, again
when a model's summary is ready. Clients that send their whole history send every message again. Each text is
therefore scanned once, and its identifiers are kept by the hash of the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from compaction.messages import Message, Text, ToolCall, ToolResult
from compaction.references import argument_text, mentions

#: Number of names that a process keeps, about 10 MB. A prompt of 200,000 tokens mentions 20,000.
_KEPT = 1 << 19


#: By hash and length of the text; the length is negative for JSON arguments. The hash is keyed and has 64
#: bits, so collisions of texts of the same length are practically impossible.
_names: dict[tuple[int, int], tuple[str, ...]] = {}
_counts: dict[tuple[int, int], tuple[int, ...]] = {}
_kept = 0


def names_of(text: str) -> tuple[str, ...]:
    """Return the identifiers of `text` in the order of their first mentions."""
    key = hash(text), len(text)
    known = _names.get(key)
    return _keep(key, tuple(dict.fromkeys(mentions(text)))) if known is None else known


def name_counts(text: str) -> tuple[int, ...]:
    """Return how often `text` mentions each of `names_of(text)`."""
    key = hash(text), len(text)
    known = _counts.get(key)
    if known is None:
        counted = Counter(mentions(text))
        _keep(key, tuple(counted))
        known = _counts[key] = tuple(counted.values())
    return known


def argument_names(arguments: str) -> tuple[str, ...]:
    """Return the identifiers in the strings and numbers of JSON arguments."""
    key = hash(arguments), -len(arguments)
    known = _names.get(key)
    return _keep(key, tuple(dict.fromkeys(mentions(argument_text(arguments))))) if known is None else known


def message_references(*messages: Message) -> frozenset[str]:
    """Return the identifiers in texts, tool results and call arguments, but not in thinking."""
    return frozenset(chain.from_iterable(chain.from_iterable(map(_part_names, messages))))


def _part_names(message: Message) -> Iterator[Sequence[str]]:
    for part in message.parts:
        if isinstance(part, Text | ToolResult):
            yield names_of(part.text)
        elif isinstance(part, ToolCall):
            yield argument_names(part.arguments)


def forget() -> None:
    """Forget all texts, for benchmarks of a session's first plan."""
    global _kept
    _names.clear()
    _counts.clear()
    _kept = 0


def _keep(key: tuple[int, int], names: tuple[str, ...]) -> tuple[str, ...]:
    global _kept
    if _kept > _KEPT:
        forget()
    _names[key] = names
    _kept += len(names) + 1
    return names
