"""The entries of a view: pushed messages, unchanged or with edited parts, and replacements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from compaction.edits import Edit, Op
from compaction.messages import Message, Part, Role, Text, ToolCall, ToolResult

VERBATIM = "verbatim"

#: Edits of single parts, by position of the message and index of the part.
PartEdits = dict[int, dict[int | None, Edit]]


class Entry(NamedTuple):
    """One message of a view, the positions that it represents, and the rule that determined its content."""

    message: Message
    first: int
    last: int
    rule: str = VERBATIM

    @property
    def is_generated(self) -> bool:
        """Whether the message was generated (a recap or marker) instead of pushed."""
        return self.rule != VERBATIM and self.message.source is None and self.message.format is None


def before_answers(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Move Anthropic's system messages that precede a generated message to the next answer.

    Anthropic accepts a system message after the first request only between a message of the user and an
    answer, and no two in a row (rule A9). Other providers accept it anywhere.
    """
    leads, moved = True, list[Entry]()
    placed: list[Entry] = []
    for entry, following in zip_longest(entries, entries[1:]):
        role = entry.message.role
        leads = leads and role is Role.SYSTEM
        is_bound = role is Role.SYSTEM and not leads and entry.message.format == "anthropic"
        if is_bound and following is not None and following.is_generated:
            moved.append(entry)
            continue
        if moved and role is Role.ASSISTANT and placed[-1].message.role is not Role.SYSTEM:
            placed += moved
            moved = []
        placed.append(entry)
    return [*placed, *moved]


def edited_entry(message: Message, edits: Mapping[int | None, Edit] | None) -> Entry:
    """Return the entry of a pushed message, with these edits of its parts."""
    if not edits:
        return Entry(message, message.position, message.position)
    parts: list[Part] = []
    saved, rule, strip = 0, VERBATIM, Op.STRIP
    for index, part in enumerate(message.parts):
        edit = edits.get(index)
        if edit is None:
            parts.append(part)
        elif edit.op is not strip:
            parts.append(with_text(part, edit.text))
    for edit in edits.values():
        saved += edit.tokens_before - edit.tokens_after
        rule = edit.strategy
    shown = Message(
        position=message.position,
        role=message.role,
        parts=tuple(parts),
        tokens=max(0, message.tokens - saved),
        turn=message.turn,
        pinned=message.pinned,
        format=message.format,
        source=message.source,
        patched=True,
    )
    return Entry(shown, message.position, message.position, rule)


def with_text(part: Part, text: str) -> Part:
    """Return the part with `text` as its content; a tool call keeps its name and gets other arguments."""
    match part:  # constructed directly, because `dataclasses.replace` takes three times as long
        case ToolResult():
            return ToolResult(
                call_id=part.call_id,
                text=text,
                is_error=part.is_error,
                server=part.server,
                source=part.source,
                patched=True,
            )
        case ToolCall():
            return ToolCall(
                call_id=part.call_id,
                name=part.name,
                arguments=text,
                server=part.server,
                fixed=part.fixed,
                source=part.source,
                patched=True,
            )
        case Text():
            return Text(text=text, source=part.source, patched=True)
        case _:
            return Text(text=text, patched=True)
