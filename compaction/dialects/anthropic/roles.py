"""Order of roles: the first message is from the user (A5), prefill (A7), system messages (A9).

The first message may also begin with a summary that the provider wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compaction.capabilities import Capabilities
from compaction.dialects.blocks import OPENING, as_user
from compaction.invariants.violations import Subject, Violation
from compaction.messages import JSON, Message, Role
from compaction.provider_summary import begins_with_summary, is_compaction

CLOSING = "Continue."


def violations(subject: Subject) -> Iterator[Violation]:
    """Yield each message whose role is not allowed at its position."""
    if not subject.messages:
        return
    if subject.messages[0].role is Role.ASSISTANT and not is_compaction(subject.messages[0]):
        yield Violation(rule="A5", position=0, message="the first message must be from the user")
    last = len(subject.messages) - 1
    if subject.messages[last].role is Role.ASSISTANT and not subject.capabilities.prefill:
        yield Violation(
            rule="A7", position=last, message="this model does not accept a trailing assistant message"
        )
    if subject.capabilities.system_messages:
        return
    for position, message in enumerate(subject.messages):
        if message.role is Role.SYSTEM:
            yield Violation(
                rule="A9",
                position=position,
                message="this model does not accept a system message here",
            )


def system_to_user(messages: Sequence[Message], capabilities: Capabilities) -> tuple[Message, ...]:
    """Convert system messages to user messages unless the model accepts them in `messages`."""
    if capabilities.system_messages or all(message.role is not Role.SYSTEM for message in messages):
        return tuple(messages)
    return tuple(as_user(message) if message.role is Role.SYSTEM else message for message in messages)


def frame(items: list[dict[str, JSON]], capabilities: Capabilities) -> list[dict[str, JSON]]:
    """Return JSON messages that begin with a user message, and end with one if the model requires it."""
    if not items:
        return items
    if items[0].get("role") != "user" and not begins_with_summary(items[0]):
        items = [{"role": "user", "content": OPENING}, *items]
    if not capabilities.prefill and items[-1].get("role") == "assistant":
        items = [*items, {"role": "user", "content": CLOSING}]
    return items
