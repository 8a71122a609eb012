"""A message that an edit has changed, part by part: as pushed, or what stands there instead."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.edits import Op
from compaction.messages import Message, Opaque, Text, Thinking, ToolCall, ToolResult
from sessions.pages.text import visible
from sessions.selectors.past_prompts import EntryContent, RecordedEdit


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPart:
    """One part as the model saw it. `text` is what stands there instead; None where it is as pushed, or
    where it is left out (`is_gone`)."""

    name: str
    edit: RecordedEdit | None
    text: str | None = None
    is_gone: bool = False


def seen_parts(piece: EntryContent) -> list[SeenPart]:
    """The parts of a changed message; none for one that is shown as it was pushed."""
    if piece.original is None or not piece.edits:
        return []
    by_part = {edit.value.part: edit for edit in piece.edits}
    return [_part(piece, index, by_part.get(index)) for index in range(len(piece.original.parts))]


def _part(piece: EntryContent, index: int, edit: RecordedEdit | None) -> SeenPart:
    assert piece.original is not None
    name = _name(piece.original, index)
    if edit is None:
        return SeenPart(name=name, edit=None)
    if edit.value.op is Op.STRIP:
        return SeenPart(name=name, edit=edit, is_gone=True)
    return SeenPart(name=name, edit=edit, text=visible(piece.texts[edit.id]))


def _name(message: Message, index: int) -> str:
    match message.parts[index]:
        case Text():
            return "text"
        case Thinking():
            return "thinking"
        case ToolCall(name=name):
            return f"call of {visible(name)}"
        case ToolResult():
            return "tool output"
        case Opaque(kind=kind):
            return visible(kind)
