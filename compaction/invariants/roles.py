"""Who may speak where at Anthropic: A5 (the user first), A7 (prefill), A9 (system messages)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from compaction.capabilities import Capabilities
from compaction.invariants.violations import Subject, Violation
from compaction.messages import JSON, Message, Role, Text

OPENING = "[The beginning of this conversation is not shown.]"
CLOSING = "Continue."


def violations(subject: Subject) -> Iterator[Violation]:
    if not subject.anthropic or not subject.messages:
        return
    if subject.messages[0].role is Role.ASSISTANT:
        yield Violation(rule="A5", position=0, message="the first message is not from the user")
    last = len(subject.messages) - 1
    if subject.messages[last].role is Role.ASSISTANT and not subject.capabilities.prefill:
        yield Violation(rule="A7", position=last, message="the model refuses a trailing assistant message")
    if subject.capabilities.system_messages:
        return
    for position, message in enumerate(subject.messages):
        if message.role is Role.SYSTEM:
            yield Violation(rule="A9", position=position, message="a system message inside `messages`")


def leading_system(messages: Sequence[Message]) -> int:
    """How many system messages stand first."""
    return next((i for i, message in enumerate(messages) if message.role is not Role.SYSTEM), len(messages))


def tell_system(messages: Sequence[Message], capabilities: Capabilities) -> tuple[Message, ...]:
    """The messages with system messages told by the user, where the model takes them in no other way."""
    if capabilities.system_messages or all(message.role is not Role.SYSTEM for message in messages):
        return tuple(messages)
    return tuple(_told(message) if message.role is Role.SYSTEM else message for message in messages)


def _told(message: Message) -> Message:
    parts = tuple(
        replace(part, text=f"[system] {part.text}", patched=True)
        if isinstance(part, Text) and part.text.strip()
        else part
        for part in message.parts
    )
    return replace(message, role=Role.USER, parts=parts, patched=True)


def framed(items: list[dict[str, JSON]], capabilities: Capabilities) -> list[dict[str, JSON]]:
    """The JSON messages with a user message first, and last where the model takes no other."""
    if not items:
        return items
    if items[0].get("role") != "user":
        items = [{"role": "user", "content": OPENING}, *items]
    if not capabilities.prefill and items[-1].get("role") == "assistant":
        items = [*items, {"role": "user", "content": CLOSING}]
    return items
