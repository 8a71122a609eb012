"""Download a session: everything as JSON Lines, or a transcript as Markdown or HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.views.decorators.http import require_safe

from compaction.messages import Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from sessions.models import AgentSession, Comment
from sessions.pages.access import Viewer, private, with_session
from sessions.pages.sharing.document import document_html
from sessions.pages.text import visible
from sessions.selectors.comments import CommentQueue, session_comments
from sessions.selectors.transcripts.export import session_jsonl
from sessions.selectors.transcripts.rows import message_batches

_FENCE = re.compile(r"`{3,}")


@require_safe
@with_session
def session_export(
    request: HttpRequest, viewer: Viewer, session: AgentSession, format: str
) -> StreamingHttpResponse:
    """Stream the session in one of `_FORMATS`."""
    if format not in _FORMATS:
        raise Http404("Unknown format")
    content_type, write = _FORMATS[format]
    response = StreamingHttpResponse(write(session), content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="session-{session.pk}.{format}"'
    return private(response)


def _markdown(session: AgentSession) -> Iterator[str]:
    yield _heading(session)
    turn, comments = -1, CommentQueue(session_comments(session=session))
    for rows, times in message_batches(session):
        for row in rows:
            if row.turn != turn:
                turn = row.turn
                at = f" · {times[turn]:%Y-%m-%d %H:%M:%S} UTC" if turn in times else ""
                yield from map(_comment_markdown, comments.until(turn - 1))
                yield f"\n## Turn {turn}{at}\n"
                yield from map(_comment_markdown, comments.until(turn))
            yield _message_markdown(row.value(session.format))
    yield from map(_comment_markdown, comments.rest())


def _comment_markdown(comment: Comment) -> str:
    at = f"{comment.created_at:%Y-%m-%d %H:%M:%S} UTC"
    lines = (
        f"**Comment by {comment.author_name} on turn {comment.turn}** · {at}",
        "",
        *visible(comment.text).splitlines(),
    )
    return "\n" + "".join(f"> {line}".rstrip() + "\n" for line in lines)


def _heading(session: AgentSession) -> str:
    facts = {
        "ID": session.external_id,
        "Agent": session.agent,
        "Model": session.model,
        "Started": f"{session.started_at:%Y-%m-%d %H:%M:%S} UTC",
        **{name: session.metadata.get(key) for name, key in _ORIGIN.items()},
        "Turns": session.turn_count,
    }
    lines = "".join(f"- {name}: {value}\n" for name, value in facts.items() if value)
    return f"# {' '.join(str(session).split())}\n\n{lines}"


_ORIGIN = {"Repository": "repository", "Folder": "cwd", "Branch": "git_branch"}


def _message_markdown(message: Message) -> str:
    parts = "\n\n".join(filter(None, map(_part_markdown, message.parts)))
    return f"\n### {message.role.value.capitalize()}\n\n{parts}\n"


def _part_markdown(part: Part) -> str:
    match part:
        case Text():
            return visible(part.text)
        case Thinking():
            return "\n".join(f"> {line}".rstrip() for line in visible(part.text).splitlines())
        case ToolCall():
            return f"Call of `{part.name}`:\n\n{_fenced(part.arguments, 'json')}"
        case ToolResult():
            name = "Output (error)" if part.is_error else "Output"
            return f"{name}:\n\n{_fenced(part.text)}"
        case Opaque():
            return f"*({part.kind})*"


def _fenced(text: Any, language: str = "") -> str:
    """Return a code block whose fence is longer than any in the text."""
    shown = visible(str(text))
    longest = max((len(fence) for fence in _FENCE.findall(shown)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


#: The content type and the writer of each format.
_FORMATS: Mapping[str, tuple[str, Callable[[AgentSession], Iterator[str] | Iterator[bytes]]]] = {
    "jsonl": ("application/x-ndjson", session_jsonl),
    "md": ("text/markdown; charset=utf-8", _markdown),
    "html": ("text/html; charset=utf-8", partial(document_html, is_download=True, has_comments=True)),
}
