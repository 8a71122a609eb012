"""One compaction: its trigger, edits, costs and recap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from sessions.models import AgentSession, Compaction
from sessions.pages.access import Viewer, actor_of, page_or_fragment, with_session, with_writable_session
from sessions.pages.session.changes import changes_context
from sessions.pages.session.compactions import COMPACTION_OPEN
from sessions.pages.session.past_prompt import edit_context
from sessions.pages.session.prompt import COMPONENTS
from sessions.pages.tabs import session_context
from sessions.pages.text import visible
from sessions.selectors.compactions.recaps import Line, RecapLines
from sessions.selectors.compactions.records import (
    compaction_detail,
    recap_fallback,
    recap_version,
)
from sessions.selectors.compactions.reference_rates import edits_of_session, rates_by_strategy
from sessions.selectors.past_prompts.changes import prompts_around
from sessions.services.compactions.lifecycle import CompactionInProgress
from sessions.services.compactions.recap_edit import EmptyRecap, NotEditable, RecapTooLarge, recap_edit
from sessions.services.compactions.recaps import recap_is_shown

#: Maximum length of an edited recap, in characters.
_MAX_LENGTH = 60_000


#: Explanations of the tail's start, by `tail_bound` of the record.
_TAIL_RULES = {
    "tokens": "set by their minimum share of the budget",
    "messages": "set by the minimum number of messages",
    "both": "set by both their minimum share of the budget and the minimum number of messages",
    "giant": "starting after an oversized message",
    "all": "everything after the first messages",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentChange:
    """Tokens of a prompt component before and after a compaction."""

    key: str
    name: str
    before: int
    after: int


@require_safe
@with_session
def session_compaction(
    request: HttpRequest, viewer: Viewer, session: AgentSession, number: int
) -> HttpResponse:
    row = get_object_or_404(session.compactions, number=number)
    detail = compaction_detail(session=session, row=row)
    context = session_context(viewer, session, "session_compactions") | {
        "detail": detail,
        "row": row,
        "record": row.record,
        "added": max(0, -row.record.get("tokens_saved", 0)),
        "tail_rule": _TAIL_RULES.get(row.record.get("tail_bound", ""), ""),
        "components": _components(row.record.get("components")),
        "provider_budget": _provider_budget(row.record),
        "fallback": recap_fallback(row),
        "sections": _sections(detail.recap.lines) if detail.recap else (),
        "can_edit": viewer.may_write and detail.recap is not None and recap_is_shown(row),
        "is_open": row.state in Compaction.OPEN,
        "rates": rates_by_strategy(edits_of_session(session.pk, compaction=row.number))
        if detail.lost
        else (),
    }
    return page_or_fragment(
        request, "sessions/compaction/page.html", "sessions/compaction/_page.html", context
    )


@require_safe
@with_session
def session_compaction_edit(
    request: HttpRequest, viewer: Viewer, session: AgentSession, number: int, ordinal: int
) -> HttpResponse:
    """Show an edit: the original content next to its replacement."""
    row = get_object_or_404(session.compactions, number=number)
    edit = get_object_or_404(row.edits, ordinal=ordinal)
    context = session_context(viewer, session, "session_compactions")
    context |= {"row": row, "edit": edit, **edit_context(session, edit)}
    return page_or_fragment(
        request, "sessions/compaction/edit.html", "sessions/compaction/_edit.html", context
    )


@require_safe
@with_session
def session_compaction_diff(
    request: HttpRequest, viewer: Viewer, session: AgentSession, number: int
) -> HttpResponse:
    """Compare the prompt before a compaction with the prompt after it, as text."""
    row = get_object_or_404(session.compactions, number=number)
    prompts = prompts_around(session=session, row=row)
    if prompts is None:
        raise Http404("The compaction changed no prompt")
    context = session_context(viewer, session, "session_compactions")
    context |= {"row": row, **changes_context(request, session, *prompts)}
    return page_or_fragment(request, "sessions/diff/compaction.html", "sessions/diff/_changes.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def session_recap(request: HttpRequest, slug: str, id: UUID, number: int) -> HttpResponse:
    """Show the current recap; members with write access can edit it."""
    view = _recap_edit if request.method == "POST" else _recap_show
    return view(request, slug, id, number)


@with_session
def _recap_show(request: HttpRequest, viewer: Viewer, session: AgentSession, number: int) -> HttpResponse:
    row = get_object_or_404(session.compactions, number=number)
    recap = recap_version(row)
    if recap is None:
        raise Http404("The compaction has no recap")
    context = session_context(viewer, session, "session_compactions")
    return _recap_form(request, context, row, recap.lines.text)


@with_writable_session
def _recap_edit(request: HttpRequest, viewer: Viewer, session: AgentSession, number: int) -> HttpResponse:
    row = get_object_or_404(session.compactions, number=number)
    text = request.POST.get("text", "")[:_MAX_LENGTH].replace("\r\n", "\n").replace("\0", "")
    try:
        edited = recap_edit(session=session, number=row.number, text=text, actor=actor_of(request))
    except CompactionInProgress:
        problem = COMPACTION_OPEN
    except (NotEditable, EmptyRecap, RecapTooLarge) as error:
        problem = f"Not changed: {error}."
    else:
        notice = f"Recap saved. The next prompts use it; to undo, revert compaction {edited.number}."
        messages.success(request, notice)
        return redirect("session_compaction", slug=viewer.project.slug, id=session.pk, number=edited.number)
    context = session_context(viewer, session, "session_compactions")
    return _recap_form(request, context, row, text, problem)


def _recap_form(
    request: HttpRequest, context: dict[str, Any], row: Compaction, text: str, problem: str = ""
) -> HttpResponse:
    can_edit = context["viewer"].may_write and recap_is_shown(row)
    context |= {"row": row, "text": text, "problem": problem, "longest": _MAX_LENGTH, "can_edit": can_edit}
    return render(request, "sessions/compaction/recap.html", context, status=422 if problem else 200)


def _components(recorded: Mapping[str, Any] | None) -> list[ComponentChange]:
    """Return the change of each component. Records of earlier versions do not contain them."""
    if not recorded:
        return []
    before, after = recorded["before"], recorded["after"]
    return [
        ComponentChange(key=key, name=name, before=before.get(key, 0), after=after.get(key, 0))
        for key, name in COMPONENTS
        if before.get(key) or after.get(key)
    ]


def _provider_budget(record: Mapping[str, Any]) -> int | None:
    """Return the budget in the provider's tokens, as the session's other pages show it."""
    if "calibration" not in record:
        return None
    return round(float(record["calibration"]) * int(record["budget"])) + int(record["overhead"])


def _sections(recap: RecapLines) -> list[tuple[str, list[Line]]]:
    """Return the sections of a recap, each line with the positions of its source messages."""
    return [(title, [(visible(text), sources) for text, sources in lines]) for title, lines in recap.sections]
