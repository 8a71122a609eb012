"""Thinking blocks: returned with their signature (A10), and bound to the prompt before them (A11)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import dropwhile

from compaction.dialects.anthropic.parsing import NAME
from compaction.invariants.pairs import matches
from compaction.invariants.violations import Subject, Violation
from compaction.messages import Message, Role, Thinking


def violations(subject: Subject) -> Iterator[Violation]:
    """Yield incomplete thinking, and thinking from before an edit if the model binds it to the prompt."""
    for position, message in enumerate(subject.messages):
        blocks = [part for part in message.parts if isinstance(part, Thinking)]
        if not all(map(is_complete, blocks)):
            yield Violation(rule="A10", position=position, message="thinking block without its signature")
        if blocks and subject.capabilities.bound_thinking and position in subject.edited:
            text = "thinking from before an earlier message was edited"
            yield Violation(rule="A11", position=position, message=text)


def is_complete(block: Thinking) -> bool:
    """Return whether Anthropic accepts the block."""
    if not block.redacted:
        return bool(block.signature)
    return isinstance(block.source, Mapping) and bool(block.source.get("data"))


def repair(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages without incomplete thinking. Rendering drops other dialects' thinking."""
    return tuple(map(_without_incomplete, messages))


def without_outdated(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages without the thinking between a call and its late result, if thinking is bound.

    The model wrote this thinking for a prompt with a note in place of the result.
    """
    outdated: set[int] = set()
    for (result, _), (call, _) in matches(messages).items():
        following = range(call + 1, result)
        outdated.update(dropwhile(lambda index: messages[index].role is Role.ASSISTANT, following))
    return tuple(
        _without_thinking(message) if index in outdated else message for index, message in enumerate(messages)
    )


def _without_thinking(message: Message) -> Message:
    kept = tuple(part for part in message.parts if not isinstance(part, Thinking))
    return message if len(kept) == len(message.parts) else replace(message, parts=kept, patched=True)


def _without_incomplete(message: Message) -> Message:
    if message.role is not Role.ASSISTANT or message.format != NAME:
        return message
    kept = tuple(part for part in message.parts if not isinstance(part, Thinking) or is_complete(part))
    if len(kept) == len(message.parts):
        return message
    return replace(message, parts=kept, patched=True)
