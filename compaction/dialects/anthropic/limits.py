"""Limits on the number of cache breakpoints and messages (A12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compaction.invariants.violations import Subject, Violation
from compaction.messages import JSON

MAX_BREAKPOINTS = 4
MAX_MESSAGES = 100_000


def violations(subject: Subject) -> Iterator[Violation]:
    """Yield each message with too many breakpoints before or in it, and too many messages."""
    count = _breakpoints(subject.system) + _breakpoints(subject.tools)
    for position, item in enumerate(subject.items):
        here = _breakpoints(_content(item))
        count += here
        if here and count > MAX_BREAKPOINTS:
            text = f"{count} cache breakpoints; the maximum is {MAX_BREAKPOINTS}"
            yield Violation(rule="A12", position=position, message=text)
    if len(subject.items) > MAX_MESSAGES:
        text = f"{len(subject.items):,} messages; the maximum is {MAX_MESSAGES:,}"
        yield Violation(rule="A12", position=MAX_MESSAGES, message=text)


def within_breakpoints(items: list[dict[str, JSON]], system: JSON, tools: JSON) -> list[dict[str, JSON]]:
    """Return the messages with only the newest breakpoints.

    Agents move their breakpoints in each turn, but the transcript also contains earlier breakpoints.
    """
    room = max(0, MAX_BREAKPOINTS - _breakpoints(system) - _breakpoints(tools))
    places = [i for i, item in enumerate(items) for _ in range(_breakpoints(item.get("content")))]
    if len(places) <= room:
        return items
    # If a message has more breakpoints than remain, remove all of them, because any choice would be
    # arbitrary.
    first_kept = places[-room] if room else len(items)
    if places.count(first_kept) > places[-room:].count(first_kept):
        first_kept += 1
    return [_without_breakpoints(item) if i < first_kept else item for i, item in enumerate(items)]


def _content(item: JSON) -> JSON:
    return item.get("content") if isinstance(item, Mapping) else None


def _breakpoints(blocks: JSON) -> int:
    if not isinstance(blocks, list):
        return 0
    maps = [block for block in blocks if isinstance(block, Mapping)]
    return sum(bool(block.get("cache_control")) + _breakpoints(block.get("content")) for block in maps)


def _without_breakpoints(item: Mapping[str, Any]) -> dict[str, JSON]:
    content = item.get("content")
    if not isinstance(content, list) or not _breakpoints(content):
        return dict(item)
    return {**item, "content": [_without_breakpoint(block) for block in content]}


def _without_breakpoint(block: JSON) -> JSON:
    if not isinstance(block, Mapping):
        return block
    kept = {k: v for k, v in block.items() if k != "cache_control"}
    if isinstance(kept.get("content"), list):
        kept["content"] = [_without_breakpoint(inner) for inner in kept["content"]]
    return kept
