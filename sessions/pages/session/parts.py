"""Parts of a message on their own: the full text of a folded one, its raw text, its images."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from compaction.jsontext import loads_object
from compaction.messages import Part, ToolCall, ToolResult
from sessions.models import AgentSession, Message
from sessions.pages.access import Viewer, number_of, page_or_fragment, private, with_session
from sessions.pages.blocks import calls_of, part_text
from sessions.pages.rendering.choice import (
    argument_renderer,
    output_renderer,
    plain,
    prose_renderer,
)
from sessions.pages.rendering.images import images_of
from sessions.selectors import convert
from sessions.selectors.transcripts.pages import calls_before, message_get

#: Characters of folded text that one request returns.
TEXT_PAGE = 200_000


@require_safe
@with_session
def session_text(
    request: HttpRequest, viewer: Viewer, session: AgentSession, position: int, part: int
) -> HttpResponse:
    """Return the full text of a part, or of an argument of a call.

    Query parameters: `argument`, `offset`, `view=text` (without Markdown, colors and highlighting) and
    `format=text` (the text alone, unchanged).
    """
    row, value = _part_or_404(session, position, part)
    argument = request.GET.get("argument")
    text = part_text(value, argument)
    if text is None:
        raise Http404("Text not found")
    if request.GET.get("format") == "text":
        encoded = text.encode("utf-8", "replace")
        return private(HttpResponse(encoded, content_type="text/plain; charset=utf-8"))
    offset = number_of(request, "offset") or 0
    end = offset + TEXT_PAGE
    is_plain = request.GET.get("view") == "text" or offset or end < len(text)
    html = plain(text[offset:end]) if is_plain else _rendered(session, row, value, text, argument)
    context = {
        "viewer": viewer,
        "session": session,
        "turn": row.turn_index,
        "position": position,
        "part": part,
        "argument": argument,
        "html": html,
        "next_offset": end if end < len(text) else None,
        "left": max(len(text) - end, 0),
    }
    return page_or_fragment(request, "sessions/text.html", "sessions/_text.html", context)


@require_safe
@with_session
def session_image(
    request: HttpRequest, viewer: Viewer, session: AgentSession, position: int, part: int, index: int
) -> HttpResponse:
    """Return an image of a message."""
    _, value = _part_or_404(session, position, part)
    images = images_of(value.source)
    if index >= len(images):
        raise Http404("Image not found")
    try:
        return private(HttpResponse(images[index].data, content_type=images[index].media_type))
    except ValueError:
        raise Http404("The content of the image is damaged") from None


def _part_or_404(session: AgentSession, position: int, part: int) -> tuple[Message, Part]:
    row = message_get(session=session, position=position)
    parts = convert.message_value(row, session.format).parts if row is not None else ()
    if row is None or part >= len(parts):
        raise Http404("Part not found")
    return row, parts[part]


def _rendered(session: AgentSession, row: Message, part: Part, text: str, argument: str | None) -> SafeString:
    match part:
        case ToolCall() if argument is not None:
            return argument_renderer(text, argument, loads_object(part.arguments))(text)
        case ToolResult():
            calls = [
                convert.message_value(each, session.format)
                for each in calls_before(session=session, positions=[row.position])
            ]
            found = {id: call for message in calls for id, call in calls_of(message).items()}
            return output_renderer(text, found.get(part.call_id))(text)
    return prose_renderer(text)(text)
