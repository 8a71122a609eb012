"""A session as one HTML page without scripts or links to the dashboard, for export and sharing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from compaction.messages import Opaque, Part, Text, Thinking, ToolCall, ToolResult
from sessions.models import AgentSession, Comment
from sessions.pages.blocks import calls_of, voice_of
from sessions.pages.rendering.choice import output_renderer, plain, prose_renderer
from sessions.pages.rendering.code import code_html
from sessions.pages.text import visible
from sessions.selectors.comments import CommentQueue, session_comments
from sessions.selectors.transcripts.rows import message_batches

#: Longer outputs are folded.
_FOLDED_LINES = 12
#: The place of the messages in the page, which is rendered around them.
_MESSAGES = "\0messages\0"
STYLES = ("css/base.css", "css/code.css", "css/document.css")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPart:
    """A part of a message. `folded` is the summary of a part that is folded, "" for others."""

    kind: str
    label: str
    html: SafeString
    folded: str = ""
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentMessage:
    """A message of the page. `starts_turn` is set for the first message of a turn, with `at` as its time.

    `comments` are those on its turn, and on turns without messages before it.
    """

    position: int
    turn: int
    voice: str
    parts: Sequence[DocumentPart]
    starts_turn: bool
    at: datetime | None
    comments: Sequence[Comment]


def document_html(session: AgentSession, *, is_download: bool, has_comments: bool) -> Iterator[str]:
    """Yield the page in chunks. A download contains its styles; an online page links to them."""
    styles = _inline_styles() if is_download else ""
    context = {"session": session, "styles": STYLES, "inline_styles": styles, "messages": _MESSAGES}
    head, foot = render_to_string("sharing/document.html", context).split(_MESSAGES)
    yield head
    calls: dict[str, ToolCall] = {}
    turn, comments = -1, CommentQueue(session_comments(session=session) if has_comments else ())
    for rows, times in message_batches(session):
        shown = []
        for row in rows:
            message = row.value(session.format)
            calls |= calls_of(message)
            shown.append(
                DocumentMessage(
                    position=row.position,
                    turn=row.turn,
                    voice=voice_of(message),
                    parts=[_part(part, calls) for part in message.parts],
                    starts_turn=row.turn != turn,
                    at=times.get(row.turn),
                    comments=comments.until(row.turn) if row.turn != turn else (),
                )
            )
            turn = row.turn
        yield render_to_string("sharing/_messages.html", {"messages": shown})
    yield render_to_string("sharing/_comments.html", {"comments": comments.rest()})
    yield foot


def _inline_styles() -> SafeString:
    texts = (Path(str(finders.find(name))).read_text() for name in STYLES)
    return mark_safe("\n".join(texts))  # noqa: S308  files of this repository


def _part(part: Part, calls: dict[str, ToolCall]) -> DocumentPart:
    match part:
        case Text():
            return DocumentPart(kind="text", label="", html=prose_renderer(part.text)(part.text))
        case Thinking():
            html = prose_renderer(part.text)(part.text)
            return DocumentPart(kind="thinking", label="thinking", html=html, folded="thinking")
        case ToolCall():
            return DocumentPart(kind="call", label=visible(part.name), html=_arguments(part))
        case ToolResult():
            return _result(part, calls.get(part.call_id))
        case Opaque():
            return DocumentPart(kind="media", label=visible(part.kind), html=escape(""))


def _arguments(call: ToolCall) -> SafeString:
    return format_html('<pre class="text">\n{}</pre>', code_html(str(call.arguments), "json"))


def _result(part: ToolResult, call: ToolCall | None) -> DocumentPart:
    lines = len(part.text.splitlines())
    render = output_renderer(part.text, call) if part.text else plain
    return DocumentPart(
        kind="result",
        label=f"{visible(call.name) if call is not None else 'tool'} output",
        html=render(part.text),
        folded=f"{lines:,} lines" if lines > _FOLDED_LINES else "",
        is_error=bool(part.is_error),
    )
