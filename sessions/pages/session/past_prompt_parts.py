"""Parts of an edited message: unchanged, replaced or removed."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.edits import Op
from compaction.messages import Message, Opaque, Text, Thinking, ToolCall, ToolResult
from sessions.pages.text import visible
from sessions.selectors.past_prompts.contents import EntryContent
from sessions.selectors.past_prompts.outline import RecordedEdit


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPart:
    """A part as the model saw it. `text` is its replacement, or None if the part is unchanged or removed."""

    name: str
    edit: RecordedEdit | None
    text: str | None = None
    is_removed: bool = False


def prompt_parts(piece: EntryContent) -> list[PromptPart]:
    """Return the parts of an edited message, or an empty list for an unchanged one."""
    if piece.original is None or not piece.edits:
        return []
    by_part = {edit.value.part: edit for edit in piece.edits}
    return [_part(piece, index, by_part.get(index)) for index in range(len(piece.original.parts))]


def _part(piece: EntryContent, index: int, edit: RecordedEdit | None) -> PromptPart:
    assert piece.original is not None
    name = _name(piece.original, index)
    if edit is None:
        return PromptPart(name=name, edit=None)
    if edit.value.op is Op.STRIP:
        return PromptPart(name=name, edit=edit, is_removed=True)
    return PromptPart(name=name, edit=edit, text=visible(piece.texts[edit.id]))


def _name(message: Message, index: int) -> str:
    match message.parts[index]:
        case Text():
            return "text"
        case Thinking():
            return "thinking"
        case ToolCall(name=name):
            return f"{visible(name)} call"
        case ToolResult():
            return "tool output"
        case Opaque(kind=kind):
            return visible(kind)
