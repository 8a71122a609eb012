"""Tools that the provider runs itself: call and result stand in one assistant message (A4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from compaction.invariants.violations import Subject, Violation
from compaction.messages import Message, Part, ToolCall, ToolResult


def violations(subject: Subject) -> Iterator[Violation]:
    """A server tool's call without its result, or the other way round."""
    if not subject.anthropic:
        return
    for position, message in enumerate(subject.messages):
        for name in sorted(_unpaired(message)):
            yield Violation(rule="A4", position=position, message=f"server tool call {name!r} is half there")


def repair(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages without halves of server tool calls, which nobody can complete."""
    return tuple(_whole(message) for message in messages)


def _unpaired(message: Message) -> set[str]:
    calls = {part.call_id for part in message.parts if isinstance(part, ToolCall) and part.server}
    results = {part.call_id for part in message.parts if isinstance(part, ToolResult) and part.server}
    return calls ^ results


def _whole(message: Message) -> Message:
    unpaired = _unpaired(message)
    if not unpaired:
        return message
    kept = tuple(part for part in message.parts if not _is_half(part, unpaired))
    return replace(message, parts=kept, patched=True)


def _is_half(part: Part, unpaired: set[str]) -> bool:
    return isinstance(part, ToolCall | ToolResult) and part.server and part.call_id in unpaired
