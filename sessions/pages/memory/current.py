"""The memory tab of a session: what it holds now, how it moved, and changing it by hand."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from compaction.errors import WorkingMemoryError
from compaction.memory import ASKED_TOKENS, MAX_TOKENS, Author, Motion, Via, churn, motions
from compaction.memory.operations import Operation
from compaction.memory.schema import title_of
from sessions.models import AgentSession
from sessions.pages.access import Viewer, number_of, page_or_fragment, session_of, viewer_of, wants_fragment
from sessions.pages.memory.rows import shown_fields, sizes_drawn
from sessions.pages.tabs import session_context
from sessions.selectors.facts import facts_offered
from sessions.selectors.memory import (
    memory_latest,
    memory_notes,
    memory_sizes,
    memory_span,
    memory_timeline,
    schema_of,
)
from sessions.selectors.memory_extraction import extraction_state
from sessions.services.dispatch import observe_dispatch
from sessions.services.memory.facts import facts_take
from sessions.services.memory.proposals import Item, facts_propose
from sessions.services.memory.watches import watch_turn
from sessions.services.memory.writing import (
    MemoryTooLarge,
    PersonsItem,
    Writer,
    memory_operate,
    memory_warning,
)

#: Revisions that one page of the time line shows, that the churn verdict looks at, and that are drawn.
STEPS, CHURN_REVISIONS, DRAWN = 25, 100, 500

_LONGEST = 4_000


@require_safe
def session_memory(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """The page; for htmx, a page of its time line (`before` in the address)."""
    viewer = viewer_of(request, slug)
    session = session_of(viewer, id)
    steps = memory_timeline(session_id=session.pk, below=number_of(request, "before"), limit=STEPS)
    context = session_context(viewer, session, "session_memory") | {
        "steps": steps,
        "before": steps[-1].row.number if steps and steps[-1].row.number > 1 else None,
        "is_older": number_of(request, "before") is not None,
    }
    if not wants_fragment(request):
        context |= _current(session, viewer)
    return page_or_fragment(request, "memory/session.html", "memory/_timeline.html", context)


def _current(session: AgentSession, viewer: Viewer) -> dict[str, Any]:
    row = memory_latest(session_id=session.pk)
    notes, last = memory_notes(row), row.number if row is not None else 0
    span = memory_span(session_id=session.pk, first=max(last - CHURN_REVISIONS, 0), last=last)
    verdict, share = churn(span)
    return {
        "row": row,
        "fields": shown_fields(notes),
        "all_fields": [(name, title_of(name)) for name in schema_of(viewer.project.memory_fields).names],
        "warning": memory_warning(notes.memory, row.tokens) if row is not None else None,
        "stale_count": len(notes.stale),
        "asked": ASKED_TOKENS,
        "most": MAX_TOKENS,
        "sizes": sizes_drawn(memory_sizes(session_id=session.pk, last=DRAWN)),
        "verdict": verdict,
        "lost_percent": round(share * 100),
        "motions": [(title_of(one.field), one) for one in motions(span) if one.motion is not Motion.EMPTY],
        "span_count": len(span) - 1,
        "offers": facts_offered(session=session),
        "watched": watch_turn(session),
        "reading": extraction_state(session=session, project=viewer.project),
    }


@require_POST
def session_memory_change(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """One change of one item, by hand."""
    viewer, session = _writer(request, slug, id)
    data = {name: _text(request, name) for name in ("op", "field", "item", "with")}
    try:
        memory_operate(
            session=session,
            operations=[Operation.from_json(data)],
            writer=Writer(author=Author.PERSON, via=Via.PAGE, reason=_text(request, "reason")[:500]),
        )
    except (WorkingMemoryError, MemoryTooLarge) as error:
        messages.error(request, f"Not changed: {error}.")
    return redirect("session_memory", slug=viewer.project.slug, id=session.pk)


@require_POST
def session_memory_observe(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """Has a worker read the turns that upkeep has not read yet."""
    viewer, session = _writer(request, slug, id)
    if observe_dispatch(session.pk):
        messages.success(request, "A worker reads the transcript; look again in a moment.")
    else:
        messages.error(request, "No worker could be reached; try again in a moment.")
    return redirect("session_memory", slug=viewer.project.slug, id=session.pk)


@require_POST
def session_memory_propose(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """Proposes one item, or all that may hold elsewhere, for review."""
    viewer, session = _writer(request, slug, id)
    field, item = _text(request, "field"), _text(request, "item")
    try:
        facts = facts_propose(session=session, items=[Item(field=field, text=item)] if field else None)
    except WorkingMemoryError as error:
        messages.error(request, f"Not proposed: {error}.")
    else:
        told = (
            "Nothing here may hold in other sessions." if not facts else f"{len(facts)} proposed for review."
        )
        messages.success(request, told)
    return redirect("session_memory", slug=viewer.project.slug, id=session.pk)


@require_POST
def session_memory_take(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """Takes one offered fact into the memory."""
    viewer, session = _writer(request, slug, id)
    facts = [fact for fact in facts_offered(session=session) if str(fact.pk) == request.POST.get("fact")]
    try:
        facts_take(session=session, facts=facts, author=Author.PERSON)
    except (WorkingMemoryError, MemoryTooLarge, PersonsItem) as error:
        messages.error(request, f"Not taken: {error}.")
    return redirect("session_memory", slug=viewer.project.slug, id=session.pk)


def _writer(request: HttpRequest, slug: str, id: UUID) -> tuple[Viewer, AgentSession]:
    viewer = viewer_of(request, slug)
    session = session_of(viewer, id)
    if not viewer.may_write:
        raise PermissionDenied("Only members who may write can change a memory.")
    return viewer, session


def _text(request: HttpRequest, name: str) -> str:
    """A text of the form, its line ends as they are stored: browsers send them as on typewriters."""
    return request.POST.get(name, "")[:_LONGEST].replace("\r\n", "\n").replace("\0", "")
