"""The prompt at a turn, as the model saw it: its rows, the content of a row, its JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from compaction.messages import JSON
from compaction.provider_summary import replacement_text
from compaction.view import VERBATIM, Entry
from compaction.view.components import COMPONENT_OPS
from sessions.models import AgentSession, Edit, Message
from sessions.pages.access import Viewer, number_of, page_or_fragment, private, with_session
from sessions.pages.blocks import Calls, message_view
from sessions.pages.session.past_prompt_parts import prompt_parts
from sessions.pages.session.past_prompt_rows import gap_window, opening_window
from sessions.pages.session.past_prompt_search import past_prompt_search
from sessions.pages.tabs import session_context
from sessions.pages.text import visible
from sessions.pages.zones import zone_of
from sessions.selectors.convert import edit_value
from sessions.selectors.past_prompts.contents import entry_contents, originals
from sessions.selectors.past_prompts.outline import Outline, outline_at, prompt_end
from sessions.selectors.past_prompts.rendering import past_prompt_json
from sessions.selectors.pins import pins_at
from sessions.store import bodies

#: Maximum number of evicted messages displayed in a row; the transcript contains all of them.
EVICTED_LIMIT = 30


def outline_or_404(session: AgentSession, turn: int) -> Outline:
    outline = outline_at(session=session, index=turn)
    if outline is None:
        raise Http404("Turn not found")
    return outline


def turn_missing(request: HttpRequest, viewer: Viewer, session: AgentSession, turn: int) -> HttpResponse:
    """Render which turns the session has, with the status 404."""
    context = session_context(viewer, session, "session")
    context |= {"other": turn, "last_turn": session.turn_count - 1}
    return page_or_fragment(
        request, "sessions/turn/missing.html", "sessions/turn/_missing.html", context, status=404
    )


def past_prompt_context(
    request: HttpRequest, viewer: Viewer, session: AgentSession, outline: Outline
) -> dict[str, Any]:
    """Return the context of `sessions/past_prompt/_prompt.html`: rows of the prompt, or search hits."""
    changed = request.GET.get("show") == "changed"
    query = request.GET.get("q", "").strip()[:200]
    context: dict[str, Any] = {
        "viewer": viewer,
        "session": session,
        "outline": outline,
        "changed": changed,
        "query": query,
        "counts": _counts(outline),
        "has_changes": any(entry.rule != VERBATIM for entry in outline.rows),
    }
    if query:
        return context | {"hits": past_prompt_search(session, outline, query, zone_of(request))}
    new_from = new_input_start(session, outline)
    if (after := number_of(request, "after")) is not None:
        until = number_of(request, "until") or outline.end
        window = gap_window(session, outline, after=after, until=until, new_from=new_from, changed=changed)
        return context | {"window": window, "until": until}
    window = opening_window(session, outline, new_from=new_from, changed=changed)
    return context | {"window": window, "until": window.tail[0].first if window.tail else outline.end}


def new_input_start(session: AgentSession, outline: Outline) -> int:
    """Return the position of the first message that the previous call did not include."""
    before = session.turns.filter(index=outline.index - 1).first() if outline.index else None
    return prompt_end(before) if before is not None else 0


@require_safe
@with_session
def session_past_prompt(
    request: HttpRequest, viewer: Viewer, session: AgentSession, turn: int
) -> HttpResponse:
    if turn > session.turn_count:
        return turn_missing(request, viewer, session, turn)
    context = past_prompt_context(request, viewer, session, outline_or_404(session, turn))
    fragment = (
        "sessions/past_prompt/_rows.html" if "after" in request.GET else "sessions/past_prompt/_prompt.html"
    )
    context |= session_context(viewer, session, "session")
    return page_or_fragment(request, "sessions/past_prompt/page.html", fragment, context)


@require_safe
@with_session
def session_past_prompt_entry(
    request: HttpRequest, viewer: Viewer, session: AgentSession, turn: int, position: int
) -> HttpResponse:
    """Show a row: the original messages next to what the model saw."""
    outline = outline_or_404(session, turn)
    entry = outline.entry_at(position)
    if entry is None:
        raise Http404("The prompt does not include this message")
    context = session_context(viewer, session, "session")
    context |= {"outline": outline, "entry": entry, **_opened(session, outline, entry)}
    return page_or_fragment(
        request, "sessions/past_prompt/entry.html", "sessions/past_prompt/_entry.html", context
    )


@require_safe
@with_session
def session_past_prompt_system(
    request: HttpRequest, viewer: Viewer, session: AgentSession, turn: int
) -> HttpResponse:
    """Show the system prompt, the tool definitions and the working memory."""
    outline = outline_or_404(session, turn)
    context = session_context(viewer, session, "session") | {"outline": outline}
    if outline.preamble is not None:
        context["system"] = _preamble_text(outline.preamble.system)
        context["tools"] = _preamble_text(outline.preamble.tools)
    if outline.memory is not None:
        context["memory"] = visible(outline.memory.text)
    return page_or_fragment(
        request, "sessions/past_prompt/system.html", "sessions/past_prompt/_system.html", context
    )


@require_safe
@with_session
def session_past_prompt_json(
    request: HttpRequest, viewer: Viewer, session: AgentSession, turn: int
) -> HttpResponse:
    """Return the prompt as JSON, as a provider's client would send it."""
    outline = outline_or_404(session, turn)
    if not outline.has_json:
        raise Http404("The prompt has too many messages")
    prompt = past_prompt_json(session=session, outline=outline)
    return private(HttpResponse(bodies.json_bytes(prompt), content_type="application/json"))


def _opened(session: AgentSession, outline: Outline, entry: Entry) -> dict[str, Any]:
    if entry.is_generated:
        rows = originals(session=session, first=entry.first, last=entry.last, limit=EVICTED_LIMIT)
        return {
            "originals": _message_views(session, rows),
            "left_out": entry.last - entry.first + 1 - len(rows),
            "replacement": visible(entry.message.text),
            "edits": outline.edits_of(entry),
        }
    [piece] = entry_contents(session=session, outline=outline, entries=[entry])
    before = originals(session=session, first=max(entry.first - 1, 0), last=entry.first, limit=2)
    return {
        "originals": _message_views(session, before)[-1:],
        "parts": prompt_parts(piece),
        "edits": piece.edits,
    }


def edit_context(session: AgentSession, edit: Edit) -> dict[str, Any]:
    """Return the context of an edit: the affected messages and their replacement."""
    replacement = visible(replacement_text(edit_value(edit)))
    if edit.op in COMPONENT_OPS:
        return {"replacement": replacement, "is_component": True}
    rows = originals(session=session, first=edit.position, last=edit.end, limit=EVICTED_LIMIT)
    return {
        "originals": _message_views(session, rows),
        "left_out": edit.end - edit.position + 1 - len(rows),
        "replacement": replacement,
    }


def _message_views(session: AgentSession, rows: list[Message]) -> list[Any]:
    calls: Calls = {}
    pins = pins_at(session, rows)
    return [message_view(row, session.format, calls, pins) for row in rows]


def _counts(outline: Outline) -> dict[str, int]:
    """Return the number of messages per rule, most frequent first."""
    counts = Counter(entry.rule for entry in outline.entries)
    if outline.run:
        counts[VERBATIM] += len(outline.run)
    return dict(counts.most_common())


def _preamble_text(data: bytes | None) -> str | None:
    """Return a system prompt as plain text, anything else as indented JSON."""
    if data is None:
        return None
    value: JSON = bodies.json_value(data)
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict) and isinstance(value.get("parts"), list):  # a content of Gemini
        value = value["parts"]
    texts = (
        [block.get("text") for block in value if isinstance(block, dict)] if isinstance(value, list) else []
    )
    if texts and all(isinstance(text, str) for text in texts):
        return visible("\n\n".join(map(str, texts)))
    return visible(bodies.json_pretty(value))
