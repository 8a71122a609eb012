"""The memory tab of a session: its current items, their history and manual changes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from compaction.errors import WorkingMemoryError
from compaction.memory.diffs import Motion, churn, motions
from compaction.memory.operations import Op, Operation
from compaction.memory.origins import Author, Via
from compaction.memory.schema import title_of
from compaction.memory.values import ASKED_TOKENS, MAX_TOKENS
from sessions.models import AgentSession
from sessions.pages.access import (
    Viewer,
    number_of,
    page_or_fragment,
    session_of,
    wants_fragment,
    with_session,
    writer_of,
)
from sessions.pages.memory.revision import memory_at_turn
from sessions.pages.memory.rows import field_rows, size_chart
from sessions.pages.session.live import live_context
from sessions.pages.tabs import session_context
from sessions.selectors.memory.extraction import extraction_state
from sessions.selectors.memory.facts import facts_offered
from sessions.selectors.memory.in_prompt import memory_in_prompt
from sessions.selectors.memory.revisions import (
    memory_latest,
    memory_notes,
    memory_sizes,
    memory_span,
    memory_timeline,
    schema_of,
)
from sessions.services.dispatch import MEMORY_OBSERVE, task_dispatch
from sessions.services.memory.facts import facts_import
from sessions.services.memory.proposals import MemoryItem, facts_propose
from sessions.services.memory.revisions import (
    MemoryTooLarge,
    ProtectedItem,
    Writer,
    memory_operate,
    memory_warning,
)
from sessions.services.memory.update_state import update_state_turn

#: Revisions per page of the history.
STEPS = 25
#: The latest revisions that the churn verdict covers.
CHURN_REVISIONS = 100
#: The latest revisions in the size chart.
CHART_REVISIONS = 500

#: Longer than any memory within its limit of tokens.
_MAX_TEXT_LENGTH = 20_000

_NOTHING_TO_PROPOSE = "This memory has no items that other sessions may need."


@require_safe
@with_session
def session_memory(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """Render the tab. htmx requests older revisions of the history with `before`.

    With `turn`, show the memory after that turn (`memory_at_turn`).
    """
    turn = number_of(request, "turn")
    if turn is not None:
        return memory_at_turn(request, viewer, session, turn)
    return _page(request, viewer, session)


def _page(
    request: HttpRequest, viewer: Viewer, session: AgentSession, *, status: int = 200, **more: Any
) -> HttpResponse:
    steps = memory_timeline(session_id=session.pk, below=number_of(request, "before"), limit=STEPS)
    context = session_context(viewer, session, "session_memory") | {
        "steps": steps,
        "before": steps[-1].row.number if steps and steps[-1].row.number > 1 else None,
        "is_older": number_of(request, "before") is not None,
        **more,
    }
    if not wants_fragment(request):
        context |= _current(session, viewer)
        if status == 200:  # updates would discard the text of a rejected form
            context |= live_context(request, viewer, session)
    return page_or_fragment(request, "memory/session.html", "memory/_timeline.html", context, status=status)


def _current(session: AgentSession, viewer: Viewer) -> dict[str, Any]:
    row = memory_latest(session_id=session.pk)
    notes, last = memory_notes(row), row.number if row is not None else 0
    span = memory_span(session_id=session.pk, first=max(last - CHURN_REVISIONS, 0), last=last)
    verdict, share = churn(span)
    return {
        "row": row,
        "fields": field_rows(notes),
        "in_prompt": memory_in_prompt(session=session),
        "all_fields": [(name, title_of(name)) for name in schema_of(viewer.project.memory_fields).names],
        "warning": memory_warning(notes.memory, row.tokens) if row is not None else None,
        "stale_count": len(notes.stale),
        "recommended": ASKED_TOKENS,
        "maximum": MAX_TOKENS,
        "chart": size_chart(memory_sizes(session_id=session.pk, last=CHART_REVISIONS)),
        "verdict": verdict,
        "lost_percent": round(share * 100),
        "motions": [(title_of(one.field), one) for one in motions(span) if one.motion is not Motion.EMPTY],
        "span_count": len(span) - 1,
        "offers": facts_offered(session=session),
        "watched": update_state_turn(session),
        "reading": extraction_state(session=session, project=viewer.project),
    }


@require_POST
def session_memory_change(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """Change one item manually. If that fails, the form for a new item shows the text that the user wrote."""
    viewer, session = _writer(request, slug, id)
    data = {name: _text(request, name) for name in ("op", "field", "item", "with")}
    reason = _text(request, "reason")[:500]
    writer = Writer(author=Author.PERSON, via=Via.PAGE, reason=reason, user_id=request.user.pk)
    try:
        changed = memory_operate(session=session, operations=[Operation.from_json(data)], writer=writer)
    except (WorkingMemoryError, MemoryTooLarge) as error:
        problem = f"The change was not saved: {_reason_of(error)}."
        written = data["with"] if data["op"] == Op.REPLACE else data["item"]
        if data["op"] in (Op.ADD, Op.REPLACE):
            draft = {"field": data["field"], "item": written, "reason": reason}
            return _page(request, viewer, session, status=422, draft=draft, problem=problem)
        messages.error(request, problem)
    else:
        done = "Memory updated." if changed else "Nothing to change: the memory already contains this text."
        messages.success(request, done)
    return redirect("session_memory", slug=viewer.project.slug, id=session.pk)


@require_POST
def session_memory_observe(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """Update the memory from the turns that automatic updates have not processed yet."""
    viewer, session = _writer(request, slug, id)
    if task_dispatch(MEMORY_OBSERVE, session.pk):
        messages.success(request, "Updating memory. Reload the page in a few seconds.")
    else:
        messages.error(request, "No worker is available. Try again in a moment.")
    return redirect("session_memory", slug=viewer.project.slug, id=session.pk)


@require_POST
def session_memory_propose(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """Propose one item for review, or all items that other sessions may need."""
    viewer, session = _writer(request, slug, id)
    field, item = _text(request, "field"), _text(request, "item")
    try:
        facts = facts_propose(session=session, items=[MemoryItem(field=field, text=item)] if field else None)
    except WorkingMemoryError as error:
        messages.error(request, f"The item was not proposed: {error}.")
    else:
        count = len(facts)
        text = (
            f"{count} item{'' if count == 1 else 's'} proposed for review." if count else _NOTHING_TO_PROPOSE
        )
        messages.success(request, text)
    return redirect("session_memory", slug=viewer.project.slug, id=session.pk)


@require_POST
def session_memory_add_shared(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    """Add one of the shared facts to the memory."""
    viewer, session = _writer(request, slug, id)
    facts = [fact for fact in facts_offered(session=session) if str(fact.pk) == request.POST.get("fact")]
    try:
        added = facts_import(session=session, facts=facts, author=Author.PERSON, user_id=request.user.pk)
    except (WorkingMemoryError, MemoryTooLarge, ProtectedItem) as error:
        messages.error(request, f"The fact was not added: {_reason_of(error)}.")
    else:
        if added:
            messages.success(request, "Fact added to the memory of this session.")
        else:
            messages.error(request, "The fact was not added: it is no longer offered.")
    return redirect("session_memory", slug=viewer.project.slug, id=session.pk)


def _writer(request: HttpRequest, slug: str, id: UUID) -> tuple[Viewer, AgentSession]:
    viewer = writer_of(request, slug, action="change a memory")
    return viewer, session_of(viewer, id)


def _text(request: HttpRequest, name: str) -> str:
    """Return a text field of the form with normalized line endings; browsers send CRLF."""
    return request.POST.get(name, "")[:_MAX_TEXT_LENGTH].replace("\r\n", "\n").replace("\0", "")


def _reason_of(error: ValueError) -> str:
    """Return the message of an error, without the name of an API field."""
    return error.reason if isinstance(error, WorkingMemoryError) else str(error)
