"""Content removed from the prompt: retrieved by its handle, whole or by lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any
from uuid import UUID

from compaction.descriptors import MEDIA
from compaction.messages import Opaque, Part, Text, Thinking, ToolCall, ToolResult
from redaction.patterns import pattern_compile
from sessions.models import AgentSession, Edit, Message
from sessions.selectors.convert import message_bytes, message_value
from sessions.store import bodies
from sessions.store.blobs import ContentLost

#: Maximum number of matches that a grep returns.
MAX_MATCHES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Content that an edit removed, and where it is in the transcript."""

    handle: str
    position: int
    part: int | None
    turn: int
    tool: str
    rule: str
    text: str


def content_find(*, session: AgentSession, handle: str) -> Content | None:
    """Return the content that a handle of this session identifies, or None. Raises `ContentLost`."""
    if "\0" in handle:
        return None
    edits = Edit.objects.filter(session=session, handle=handle)
    edit = max(edits, key=attrgetter("pk"), default=None)
    if edit is None:
        return None
    row = Message.objects.filter(session=session, position=edit.position).select_related("blob").first()
    if row is None:
        return None
    if isinstance(message_bytes(row), bodies.Placeholder):
        raise ContentLost("The content is missing from object storage, or damaged.")
    value = message_value(row, session.format)
    parts = value.parts if edit.part is None else value.parts[edit.part : edit.part + 1]
    return Content(
        handle=handle,
        position=row.position,
        part=edit.part,
        turn=row.turn_index,
        tool=_tool_of(session.pk, row, parts, session.format),
        rule=edit.strategy,
        text="\n".join(filter(None, (text for part in parts for text in (part_text(part), _media(part))))),
    )


def _media(part: Part) -> str:
    """Return the note for the media of an output, which its text does not contain."""
    return f"[{MEDIA}]" if isinstance(part, ToolResult) and part.media_tokens else ""


def part_text(part: Part) -> str:
    """Return the text of a message part."""
    match part:
        case Text(text=text) | Thinking(text=text) | ToolResult(text=text):
            return text
        case ToolCall(arguments=arguments):
            return arguments
        case Opaque(kind=kind):
            return f"[{kind}]"


def _tool_of(session_id: UUID, row: Message, parts: Sequence[Part], format: str | None) -> str:
    """Return the name of the tool that produced these parts, from its call in an earlier message."""
    calls = {part.call_id for part in parts if isinstance(part, ToolResult)}
    if not calls:
        return next((part.name for part in parts if isinstance(part, ToolCall)), "")
    before = Message.objects.filter(
        session_id=session_id, role="assistant", position__lt=row.position, position__gte=row.position - 64
    ).select_related("blob")
    for message in before.order_by("-position"):
        for call in message_value(message, format).tool_calls:
            if call.call_id in calls:
                return call.name
    return ""


def slice_lines(text: str, *, offset: int, limit: int) -> tuple[str, int | None]:
    """Return `limit` lines starting at `offset`, and the offset of the next part."""
    lines = text.splitlines(keepends=True)
    piece = lines[offset : offset + limit]
    after = offset + len(piece)
    return "".join(piece), after if after < len(lines) else None


def slice_characters(text: str, *, offset: int, limit: int) -> tuple[str, int | None]:
    """Return `limit` characters starting at `offset`, and the offset of the next part."""
    after = min(len(text), offset + limit)
    return text[offset:after], after if after < len(text) else None


def grep(text: str, pattern: str, *, context: int = 0) -> tuple[list[Mapping[str, Any]], int]:
    """Return the lines that match `pattern` with `context` lines around each, and the number of matches.

    Matching takes linear time (RE2). Raises `BadPattern`.
    """
    compiled = pattern_compile(pattern)
    lines = text.splitlines()
    hits = [number for number, line in enumerate(lines) if compiled.search(line)]
    shown = sorted(
        {
            number
            for hit in hits[:MAX_MATCHES]
            for number in range(max(0, hit - context), min(len(lines), hit + context + 1))
        }
    )
    matched = set(hits)
    return [{"line": number + 1, "text": lines[number], "match": number in matched} for number in shown], len(
        hits
    )
