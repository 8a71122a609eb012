"""The identifiers of each text, found once per process (see `compaction.references`).

A message appears in several plans before it is evicted: in the tail of one, in the middle of the next, again
when a model's summary is ready. Clients that send their whole history send every message again. Each text is
therefore scanned once, and its identifiers are kept by the hash of the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from compaction.messages import Message, Text, ToolCall, ToolResult
from compaction.references import argument_text, mentions, mentions_of

#: Number of names that a process keeps, about 10 MB. A prompt of 200,000 tokens mentions 20,000.
_KEPT = 1 << 19

#: Number of characters whose identifiers are found at once.
_BATCH = 1 << 14

#: Minimum length of the texts whose mentions are counted at once. Descriptors replace most of them.
_COUNTED = 800

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
    learn(messages)
    return frozenset(chain.from_iterable(chain.from_iterable(map(_part_names, messages))))


def learn(messages: Iterable[Message]) -> None:
    """Find the identifiers of these messages. Later calls for one of their texts are then fast."""
    new: dict[tuple[int, int], str] = {}
    size = 0
    for key, text in chain.from_iterable(map(_texts, messages)):
        if key not in _names and key not in new:
            new[key] = text if key[1] >= 0 else argument_text(text)
            size += len(text)
            if size >= _BATCH:
                _learn(new)
                new, size = {}, 0
    _learn(new)


def _learn(texts: Mapping[tuple[int, int], str]) -> None:
    for (key, text), mentioned in zip(texts.items(), mentions_of(texts.values()), strict=True):
        if len(text) < _COUNTED:
            _keep(key, tuple(dict.fromkeys(mentioned)))
        else:
            counted = Counter(mentioned)
            _keep(key, tuple(counted))
            _counts[key] = tuple(counted.values())


def _texts(message: Message) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the texts with identifiers, each with its key in `_names`."""
    for part in message.parts:
        if isinstance(part, Text | ToolResult):
            yield (hash(part.text), len(part.text)), part.text
        elif isinstance(part, ToolCall):
            yield (hash(part.arguments), -len(part.arguments)), part.arguments


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
