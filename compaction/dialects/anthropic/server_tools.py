"""Tools that the provider runs: call and result are in the same assistant message (A4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from compaction.invariants.violations import Subject, Violation
from compaction.messages import Message, Part, ToolCall, ToolResult


def violations(subject: Subject) -> Iterator[Violation]:
    """Yield each server tool call without its result and each result without its call."""
    for position, message in enumerate(subject.messages):
        for call_id in sorted(_unpaired(message)):
            text = f"server tool call {call_id!r} must have its call and its result in this message"
            yield Violation(rule="A4", position=position, message=text)


def repair(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages without unpaired server tool calls and results."""
    return tuple(map(_without_unpaired, messages))


def _unpaired(message: Message) -> set[str]:
    calls = {part.call_id for part in message.parts if isinstance(part, ToolCall) and part.server}
    results = {part.call_id for part in message.parts if isinstance(part, ToolResult) and part.server}
    return calls ^ results


def _without_unpaired(message: Message) -> Message:
    unpaired = _unpaired(message)
    if not unpaired:
        return message
    kept = tuple(part for part in message.parts if not _is_unpaired(part, unpaired))
    return replace(message, parts=kept, patched=True)


def _is_unpaired(part: Part, unpaired: set[str]) -> bool:
    return isinstance(part, ToolCall | ToolResult) and part.server and part.call_id in unpaired
