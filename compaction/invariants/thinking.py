"""Thinking blocks at Anthropic: A10 (returned as they were made) and A11 (bound to what stood before)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from compaction.invariants.violations import Subject, Violation
from compaction.messages import Message, Role, Thinking


def violations(subject: Subject) -> Iterator[Violation]:
    if not subject.anthropic:
        return
    for position, message in enumerate(subject.messages):
        thoughts = [part for part in message.parts if isinstance(part, Thinking)]
        if any(not is_whole(thought) for thought in thoughts):
            yield Violation(rule="A10", position=position, message="a thinking block without its signature")
        if thoughts and subject.capabilities.bound_thinking and position in subject.edited:
            told = "thinking that was made before an earlier message was edited"
            yield Violation(rule="A11", position=position, message=told)


def is_whole(thought: Thinking) -> bool:
    """Whether Anthropic takes the block back."""
    if not thought.redacted:
        return bool(thought.signature)
    return isinstance(thought.source, Mapping) and bool(thought.source.get("data"))


def repair(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages without thinking that Anthropic would refuse; other formats' thinking goes anyway."""
    return tuple(_without_broken(message) for message in messages)


def _without_broken(message: Message) -> Message:
    if message.role is not Role.ASSISTANT or message.format != "anthropic":
        return message
    kept = tuple(part for part in message.parts if not isinstance(part, Thinking) or is_whole(part))
    if len(kept) == len(message.parts):
        return message
    return replace(message, parts=kept, patched=True)


def open_loop_start(messages: Sequence[Message]) -> int:
    """Index of the first message of the tool loop that is still open: behind the last words of the user.

    Thinking from there on has to go back as it was made (A10).
    """
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role is Role.USER and not message.tool_results:
            return index + 1
    return 0
