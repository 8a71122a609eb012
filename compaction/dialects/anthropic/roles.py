"""Order of roles: the first message is from the user (A5), prefill (A7), system messages (A9).

The first message may also begin with a summary that the provider wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from compaction.capabilities import Capabilities
from compaction.dialects.anthropic.parsing import NAME
from compaction.dialects.blocks import OPENING, as_user
from compaction.invariants.violations import Subject, Violation
from compaction.messages import JSON, Message, Role, Text, ToolResult
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
    for position in _misplaced(subject.messages, subject.capabilities):
        yield Violation(
            rule="A9", position=position, message="this model does not accept a system message here"
        )


def system_to_user(messages: Sequence[Message], capabilities: Capabilities) -> tuple[Message, ...]:
    """Convert system messages to user messages where the model does not accept them."""
    misplaced = frozenset(_misplaced(messages, capabilities))
    return tuple(_as_user(each) if index in misplaced else each for index, each in enumerate(messages))


def _misplaced(messages: Sequence[Message], capabilities: Capabilities) -> Iterator[int]:
    """Yield the index of each system message that the model does not accept at its position.

    System messages must follow the user, or the result of a server tool, and precede an answer or end the
    prompt. Those without content, which only change the effort, are accepted anywhere.
    """
    if not capabilities.system_messages:
        yield from (index for index, message in enumerate(messages) if message.role is Role.SYSTEM)
        return
    start = 0
    for role, group in groupby(messages, key=attrgetter("role")):
        end = start + len(list(group))
        if role is Role.SYSTEM and not _may_contain_system(messages, start, end):
            yield from (index for index in range(start, end) if messages[index].parts)
        start = end


def _may_contain_system(messages: Sequence[Message], start: int, end: int) -> bool:
    """Return whether the messages before `start` and from `end` on may enclose system messages."""
    if not start or (end < len(messages) and messages[end].role is not Role.ASSISTANT):
        return False
    before = messages[start - 1]
    if before.role is not Role.ASSISTANT:
        return True
    return any(isinstance(part, ToolResult) and part.server for part in before.parts[-1:])


def _as_user(message: Message) -> Message:
    """Return a system message as one of the user, which can only contain its text."""
    spoken = as_user(message)
    if message.format != NAME:
        return spoken
    source = {name: value for name, value in (message.source or {}).items() if name in ("role", "content")}
    return replace(spoken, parts=tuple(p for p in spoken.parts if isinstance(p, Text)), source=source)


def frame(items: list[dict[str, JSON]], capabilities: Capabilities) -> list[dict[str, JSON]]:
    """Return JSON messages that begin with a user message, and end with one if the model requires it."""
    if not items:
        return items
    if items[0].get("role") != "user" and not begins_with_summary(items[0]):
        items = [{"role": "user", "content": OPENING}, *items]
    if not capabilities.prefill and items[-1].get("role") == "assistant":
        items = [*items, {"role": "user", "content": CLOSING}]
    return items
