"""The entries of a view: pushed messages, unchanged or with edited parts, and replacements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
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
    """Move Anthropic's system messages that edits have separated from their answer to the next answer.

    Anthropic accepts a system message after the first request only between a message of the user and an
    answer, or at the end (rule A9). Other providers accept it anywhere.
    """
    placed: list[Entry] = []
    moved: list[Entry] = []
    start = 0
    for role, group in groupby(entries, key=_role):
        run = list(group)
        start += len(run)
        following = entries[start] if start < len(entries) else None
        if role is Role.SYSTEM and placed and _is_separated(placed[-1], run, following):
            moved += run
            continue
        if moved and role is Role.ASSISTANT and placed[-1].message.role is not Role.ASSISTANT:
            placed += moved
            moved = []
        placed += run
    return [*placed, *moved]


def _role(entry: Entry) -> Role:
    return entry.message.role


def _is_separated(before: Entry, run: Sequence[Entry], after: Entry | None) -> bool:
    """Return whether edits have removed or inserted a message next to Anthropic's system messages, so that
    the provider would reject them."""
    if run[0].message.format != "anthropic":
        return False
    if before.message.role is Role.ASSISTANT and before.last + 1 < run[0].first:
        return True
    if after is None or after.message.role is Role.ASSISTANT:
        return False
    return after.is_generated or run[-1].last + 1 < after.first


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
