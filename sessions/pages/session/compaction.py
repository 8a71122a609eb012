"""One compaction: why it came, what it changed edit by edit, what it costs, and the recap it wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from sessions.models import AgentSession, Compaction
from sessions.pages.access import actor_of, page_or_fragment, session_of, viewer_of
from sessions.pages.session.compactions import writer_of
from sessions.pages.session.prompt import COMPONENTS
from sessions.pages.session.seen import edit_context
from sessions.pages.tabs import session_context
from sessions.pages.text import visible
from sessions.selectors.compactions import compaction_detail, compaction_get, recap_version
from sessions.selectors.recaps import Line, RecapLines
from sessions.selectors.reference_rates import edits_of_session, rates_by_strategy
from sessions.services.compactions.apply import CompactionOpen
from sessions.services.compactions.recap_edit import EmptyRecap, NotEditable, RecapTooLarge, recap_edit

#: Characters of a recap that a person writes.
_LONGEST = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentChange:
    """Tokens of one component of the prompt on both sides of a compaction."""

    key: str
    name: str
    before: int
    after: int


@require_safe
def session_compaction(request: HttpRequest, slug: str, id: UUID, number: int) -> HttpResponse:
    viewer = viewer_of(request, slug)
    session = session_of(viewer, id)
    row = _compaction_or_404(session, number)
    detail = compaction_detail(session=session, row=row)
    context = session_context(viewer, session, "session_compactions") | {
        "detail": detail,
        "row": row,
        "record": row.record,
        "components": _components(row.record.get("components")),
        "sections": _sections(detail.recap.lines) if detail.recap else (),
        "can_edit": viewer.may_write and row.state == Compaction.State.DONE and detail.recap is not None,
        "is_open": row.state in Compaction.OPEN,
        "rates": rates_by_strategy(edits_of_session(session.pk, compaction=row.number)),
    }
    return page_or_fragment(
        request, "sessions/compaction/page.html", "sessions/compaction/_page.html", context
    )


@require_safe
def session_compaction_edit(
    request: HttpRequest, slug: str, id: UUID, number: int, ordinal: int
) -> HttpResponse:
    """One edit: what was pushed beside what stands there instead."""
    viewer = viewer_of(request, slug)
    session = session_of(viewer, id)
    row = _compaction_or_404(session, number)
    edit = row.edits.filter(ordinal=ordinal).first() if ordinal < 2**31 else None
    if edit is None:
        raise Http404("no such edit")
    context = session_context(viewer, session, "session_compactions")
    context |= {"row": row, "edit": edit, **edit_context(session, edit)}
    return page_or_fragment(
        request, "sessions/compaction/edit.html", "sessions/compaction/_edit.html", context
    )


@require_http_methods(["GET", "HEAD", "POST"])
def session_recap(request: HttpRequest, slug: str, id: UUID, number: int) -> HttpResponse:
    """The recap as it stands, which those who may write can write anew."""
    if request.method == "POST":
        return _recap_edit(request, slug, id, number)
    viewer = viewer_of(request, slug)
    session = session_of(viewer, id)
    row = _compaction_or_404(session, number)
    recap = recap_version(row)
    if recap is None:
        raise Http404("the compaction has no recap")
    context = session_context(viewer, session, "session_compactions")
    return _recap_form(request, context, row, recap.lines.text)


def _recap_edit(request: HttpRequest, slug: str, id: UUID, number: int) -> HttpResponse:
    viewer, session = writer_of(request, slug, id)
    row = _compaction_or_404(session, number)
    text = request.POST.get("text", "")[:_LONGEST].replace("\r\n", "\n").replace("\0", "")
    try:
        made = recap_edit(session=session, number=row.number, text=text, actor=actor_of(request))
    except CompactionOpen:
        problem = "A compaction is under way; wait for its end."
    except (NotEditable, EmptyRecap, RecapTooLarge) as error:
        problem = f"Not changed: {error}."
    else:
        told = f"Prompts show the new recap from now on; reverting compaction {made.number} undoes it."
        messages.success(request, told)
        return redirect("session_compaction", slug=slug, id=id, number=made.number)
    context = session_context(viewer, session, "session_compactions")
    return _recap_form(request, context, row, text, problem)


def _recap_form(
    request: HttpRequest, context: dict[str, Any], row: Compaction, text: str, problem: str = ""
) -> HttpResponse:
    context |= {"row": row, "text": text, "problem": problem, "longest": _LONGEST}
    return render(request, "sessions/compaction/recap.html", context, status=422 if problem else 200)


def _compaction_or_404(session: AgentSession, number: int) -> Compaction:
    row = compaction_get(session=session, number=number)
    if row is None:
        raise Http404("no such compaction")
    return row


def _components(recorded: Mapping[str, Any] | None) -> list[ComponentChange]:
    """By component, as far as the record has it: compactions of earlier versions did not write it down."""
    if not recorded:
        return []
    before, after = recorded["before"], recorded["after"]
    return [
        ComponentChange(key=key, name=name, before=before.get(key, 0), after=after.get(key, 0))
        for key, name in COMPONENTS
        if before.get(key) or after.get(key)
    ]


def _sections(recap: RecapLines) -> list[tuple[str, list[Line]]]:
    """The recap for the page: each line with the messages that it comes from."""
    return [(title, [(visible(text), sources) for text, sources in lines]) for title, lines in recap.sections]
