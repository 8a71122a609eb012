"""Reasoning items: kept with the items that follow them (R2), and only with their encrypted content (R3).

The items of one response are consecutive. The provider rejects reasoning without a following item of the
same response, and an item with an id without the reasoning that it knows to precede it. So if reasoning is
removed, the following items of its response lose their ids. If their kind requires one, it is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from compaction.dialects.blocks import as_text, digested_id
from compaction.dialects.openai_responses.kinds import ID_REQUIRED, NAME, REASONING, kind_of
from compaction.invariants.violations import Subject, Violation
from compaction.messages import Message, Part, Role, Text, Thinking


def violations(subject: Subject) -> Iterator[Violation]:
    """Yield reasoning without encrypted content, and reasoning without a following item."""
    for position, message in enumerate(subject.messages):
        if not is_reasoning(message):
            continue
        if not is_complete(message):
            text = "reasoning without `encrypted_content`, which is rejected unless `store` is true"
            yield Violation(rule="R3", position=position, message=text)
        if not _is_followed(subject.messages, position):
            text = "reasoning without the item that follows it in its response"
            yield Violation(rule="R2", position=position, message=text)


def is_reasoning(message: Message) -> bool:
    """Return whether the message is a reasoning item, even if an edit has removed its content."""
    return message.format == NAME and message.source is not None and kind_of(message.source) == REASONING


def is_complete(message: Message) -> bool:
    """Return whether a reasoning item can be sent by a client whose items the provider does not store."""
    return any(isinstance(part, Thinking) and part.signature for part in message.parts)


def repair(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages without incomplete reasoning, and without the ids that require it."""
    return _repaired(messages, lambda index: is_complete(messages[index]) and _is_followed(messages, index))


def without_orphaned_ids(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages after edits. Items lose their ids if an edit has removed their reasoning."""
    if all(message.parts or not is_reasoning(message) for message in messages):
        return tuple(messages)
    return _repaired(messages, lambda index: bool(messages[index].parts), keeps_removed=True)


def _repaired(
    messages: Sequence[Message], is_kept: Callable[[int], bool], *, keeps_removed: bool = False
) -> tuple[Message, ...]:
    out: list[Message] = []
    is_removed = False
    for index, message in enumerate(messages):
        is_removed = is_removed and message.role is Role.ASSISTANT
        if is_reasoning(message) and not is_kept(index):
            is_removed = True
            if keeps_removed:
                out.append(message)
            continue
        out.append(_without_id(message) if is_removed else message)
    return tuple(out)


def _is_followed(messages: Sequence[Message], index: int) -> bool:
    """Return whether an item of the same response follows the reasoning."""
    for message in messages[index + 1 :]:
        if message.role is not Role.ASSISTANT:
            return False
        if not is_reasoning(message) and any(map(_is_rendered, message.parts)):
            return True
    return False


def _is_rendered(part: Part) -> bool:
    return not isinstance(part, Thinking) and (not isinstance(part, Text) or bool(part.text))


def _without_id(message: Message) -> Message:
    source = message.source
    if message.format != NAME or not isinstance(source, Mapping) or "id" not in source or _needs_id(source):
        return message
    kept = {k: v for k, v in source.items() if k != "id"}
    if kind_of(source) in ID_REQUIRED:
        kept["id"] = digested_id(as_text(source["id"]))
    return replace(message, source=kept)


def _needs_id(source: Mapping[str, object]) -> bool:
    """Return whether the id of an item identifies its call."""
    return not source.get("call_id") and kind_of(source) != "message"
