"""What the model saw at a turn: the lines of its prompt, one of them opened, its JSON."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from compaction.messages import JSON
from compaction.view import Entry
from sessions.models import AgentSession, Edit, Message
from sessions.pages.access import Viewer, number_of, page_or_fragment, private, session_of, viewer_of
from sessions.pages.blocks import shown_message
from sessions.pages.session.seen_parts import seen_parts
from sessions.pages.session.seen_rows import gap_window, opening_window
from sessions.pages.session.seen_search import seen_search
from sessions.pages.tabs import session_context
from sessions.pages.text import visible
from sessions.selectors.past_prompts import (
    Outline,
    entry_contents,
    originals,
    outline_at,
    past_prompt_json,
    prompt_end,
)
from sessions.store import bodies

#: Evicted messages that a line shows when it is opened; the transcript has all of them.
EVICTED_SHOWN = 30


def outline_or_404(session: AgentSession, turn: int) -> Outline:
    outline = outline_at(session=session, index=turn)
    if outline is None:
        raise Http404("no such turn")
    return outline


def seen_context(
    request: HttpRequest, viewer: Viewer, session: AgentSession, outline: Outline
) -> dict[str, Any]:
    """What `sessions/seen/_seen.html` shows: lines of the prompt, or hits of a search in the transcript."""
    changed = request.GET.get("show") == "changed"
    asked = request.GET.get("q", "").strip()[:200]
    context: dict[str, Any] = {
        "viewer": viewer,
        "session": session,
        "outline": outline,
        "changed": changed,
        "asked": asked,
        "counts": _counts(outline),
    }
    if asked:
        return context | {"hits": seen_search(session, outline, asked)}
    new_from = entered_from(session, outline)
    if (after := number_of(request, "after")) is not None:
        until = number_of(request, "until") or outline.end
        window = gap_window(session, outline, after=after, until=until, new_from=new_from, changed=changed)
        return context | {"window": window, "until": until}
    window = opening_window(session, outline, new_from=new_from, changed=changed)
    return context | {"window": window, "until": window.tail[0].first if window.tail else outline.end}


def entered_from(session: AgentSession, outline: Outline) -> int:
    """The first position that the call before had not read."""
    before = session.turns.filter(index=outline.index - 1).first() if outline.index else None
    return prompt_end(before) if before is not None else 0


@require_safe
def session_seen(request: HttpRequest, slug: str, id: UUID, turn: int) -> HttpResponse:
    viewer = viewer_of(request, slug)
    session = session_of(viewer, id)
    context = seen_context(request, viewer, session, outline_or_404(session, turn))
    fragment = "sessions/seen/_rows.html" if "after" in request.GET else "sessions/seen/_seen.html"
    context |= session_context(viewer, session, "session")
    return page_or_fragment(request, "sessions/seen/seen.html", fragment, context)


@require_safe
def session_seen_entry(request: HttpRequest, slug: str, id: UUID, turn: int, position: int) -> HttpResponse:
    """One line opened: what was pushed beside what the model saw."""
    viewer = viewer_of(request, slug)
    session = session_of(viewer, id)
    outline = outline_or_404(session, turn)
    entry = outline.entry_at(position)
    if entry is None:
        raise Http404("the prompt does not show this message")
    context = session_context(viewer, session, "session")
    context |= {"outline": outline, "entry": entry, **_opened(session, outline, entry)}
    return page_or_fragment(request, "sessions/seen/entry.html", "sessions/seen/_entry.html", context)


@require_safe
def session_seen_preamble(request: HttpRequest, slug: str, id: UUID, turn: int) -> HttpResponse:
    """System text and tool definitions that stood before the messages."""
    viewer = viewer_of(request, slug)
    session = session_of(viewer, id)
    outline = outline_or_404(session, turn)
    context = session_context(viewer, session, "session") | {"outline": outline}
    if outline.preamble is not None:
        context["system"] = _preamble_text(outline.preamble.system)
        context["tools"] = _preamble_text(outline.preamble.tools)
    return page_or_fragment(request, "sessions/seen/preamble.html", "sessions/seen/_preamble.html", context)


@require_safe
def session_seen_json(request: HttpRequest, slug: str, id: UUID, turn: int) -> HttpResponse:
    """The prompt as a provider's client would have sent it."""
    session = session_of(viewer_of(request, slug), id)
    prompt = past_prompt_json(session=session, outline=outline_or_404(session, turn))
    return private(HttpResponse(bodies.json_bytes(prompt), content_type="application/json"))


def _opened(session: AgentSession, outline: Outline, entry: Entry) -> dict[str, Any]:
    if entry.is_generated:
        rows = originals(session=session, first=entry.first, last=entry.last, limit=EVICTED_SHOWN)
        return {
            "originals": _shown(session, rows),
            "left_out": entry.last - entry.first + 1 - len(rows),
            "made": visible(entry.message.text),
            "edits": outline.edits_of(entry),
        }
    [piece] = entry_contents(session=session, outline=outline, entries=[entry])
    before = originals(session=session, first=max(entry.first - 1, 0), last=entry.first, limit=2)
    return {"originals": _shown(session, before)[-1:], "parts": seen_parts(piece), "edits": piece.edits}


def edit_context(session: AgentSession, edit: Edit) -> dict[str, Any]:
    """One edit for a page: the messages that it touches, and what stands there instead."""
    rows = originals(session=session, first=edit.position, last=edit.end, limit=EVICTED_SHOWN)
    return {
        "originals": _shown(session, rows),
        "left_out": edit.end - edit.position + 1 - len(rows),
        "made": visible(bodies.unpack(edit.text).decode()),
    }


def _shown(session: AgentSession, rows: list[Message]) -> list[Any]:
    names: dict[str, str] = {}
    return [shown_message(row, session.format, names) for row in rows]


def _counts(outline: Outline) -> dict[str, int]:
    """How many messages each rule shows, most first."""
    counts: dict[str, int] = {}
    for entry in outline.entries:
        counts[entry.rule] = counts.get(entry.rule, 0) + 1
    return dict(sorted(counts.items(), key=lambda pair: -pair[1]))


def _preamble_text(data: bytes | memoryview | None) -> str | None:
    """System text as people read it, tools as JSON."""
    if data is None:
        return None
    value: JSON = bodies.json_value(bodies.unpack(data))
    if isinstance(value, str):
        return visible(value)
    texts = (
        [block.get("text") for block in value if isinstance(block, dict)] if isinstance(value, list) else []
    )
    if texts and all(isinstance(text, str) for text in texts):
        return visible("\n\n".join(map(str, texts)))
    return visible(bodies.json_pretty(value))
