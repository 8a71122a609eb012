"""The list of a session's compactions, which polls while one is open, and its actions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from compaction.policy import PRESETS
from redaction import redact
from sessions.models import AgentSession, Compaction
from sessions.pages.access import (
    Viewer,
    actor_of,
    number_of,
    page,
    page_or_fragment,
    private,
    wants_fragment,
    with_session,
    with_writable_session,
)
from sessions.pages.blocks import pin_text
from sessions.pages.policies import policy_summary
from sessions.pages.session.budget import BudgetForm
from sessions.pages.tabs import session_context
from sessions.pages.terms import preset_meaning
from sessions.selectors.compactions.client_context import client_compactions
from sessions.selectors.compactions.records import compactions_jsonl, compactions_newest, recap_fallback
from sessions.selectors.pins import pinned_messages
from sessions.selectors.redaction import redaction_of
from sessions.selectors.summarizers import summarizer_is_expected
from sessions.selectors.token_budgets import session_budget as budget_of
from sessions.services.compactions.lifecycle import CompactionInProgress
from sessions.services.compactions.planning import PlanningFailed, preview_plan
from sessions.services.compactions.revert import (
    NotReappliable,
    NotRevertible,
    compaction_reapply,
    compaction_revert,
    revert_preview,
)
from sessions.services.compactions.triggers import compaction_request
from sessions.services.sessions.lifecycle import session_budget_change, session_policy_change

#: Maximum length of compaction instructions, in characters.
_MAX_LENGTH = 4_000
#: Maximum number of compactions by the client that are listed.
_BY_CLIENT = 50

COMPACTION_OPEN = "A compaction is already in progress. Wait until it has finished."

_PAGE, _FRAGMENT = "sessions/compactions.html", "sessions/_compactions.html"


@require_safe
@with_session
def session_compactions(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    return _list(request, viewer, session)


@require_safe
@with_session
def session_compactions_export(
    request: HttpRequest, viewer: Viewer, session: AgentSession
) -> StreamingHttpResponse:
    """Download the session's compactions as JSON Lines."""
    response = StreamingHttpResponse(compactions_jsonl(session), content_type="application/x-ndjson")
    response["Content-Disposition"] = f'attachment; filename="compactions-{session.pk}.jsonl"'
    return private(response)


@require_safe
@with_session
def session_compact_preview(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """Plan a compaction without applying it.

    The page loads the plan, which can take a second, with another request: for htmx, or with `plan=1`.
    """
    context = session_context(viewer, session, "session_compactions")
    if not wants_fragment(request) and request.GET.get("plan") != "1":
        return page(request, "sessions/compact_preview.html", context | {"is_loading": True})
    try:
        plan = preview_plan(session)
        break_even = plan.record.break_even_turns
        context |= {
            "plan": plan,
            "record": plan.record,
            "break_even": math.ceil(break_even) if break_even is not None else None,
            "uncached": plan.record.tokens_rebilled - plan.record.tokens_new,
        }
    except PlanningFailed as error:
        context |= {"failure": str(error)}
    return page_or_fragment(
        request, "sessions/compact_preview.html", "sessions/_compact_preview.html", context
    )


@require_POST
@with_writable_session
def session_compact(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    instructions = request.POST.get("instructions", "")[:_MAX_LENGTH].replace("\0", "")
    clean, _ = redact(instructions, redaction=redaction_of(viewer.project))
    try:
        compaction_request(session=session, reason="requested in the dashboard", instructions=clean)
    except CompactionInProgress:
        return _answer(request, viewer, session, COMPACTION_OPEN)
    return _answer(request, viewer, session)


@require_http_methods(["GET", "HEAD", "POST"])
@with_writable_session
def session_revert(request: HttpRequest, viewer: Viewer, session: AgentSession, number: int) -> HttpResponse:
    """Show what a revert would do to the next prompt; POST reverts."""
    if request.method != "POST":
        return _revert_preview(request, viewer, session, number)
    try:
        compaction_revert(session=session, number=number, actor=actor_of(request))
    except NotRevertible as error:
        return _answer(request, viewer, session, f"Not reverted: {error}.")
    return _answer(request, viewer, session)


def _revert_preview(request: HttpRequest, viewer: Viewer, session: AgentSession, number: int) -> HttpResponse:
    row = get_object_or_404(session.compactions, number=number, state=Compaction.State.DONE)
    context = session_context(viewer, session, "session_compactions")
    context |= {"row": row, "preview": revert_preview(session=session, number=number)}
    context["in_list"] = wants_fragment(request)
    return page_or_fragment(request, "sessions/revert.html", "sessions/_revert.html", context)


@require_POST
@with_writable_session
def session_reapply(request: HttpRequest, viewer: Viewer, session: AgentSession, number: int) -> HttpResponse:
    """Apply a reverted compaction again."""
    try:
        compaction_reapply(session=session, number=number, actor=actor_of(request))
    except NotReappliable as error:
        return _answer(request, viewer, session, f"Not applied: {error}.")
    except CompactionInProgress:
        return _answer(request, viewer, session, COMPACTION_OPEN)
    return _answer(request, viewer, session)


@require_POST
@with_writable_session
def session_policy(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """Replace the session's policy with a preset."""
    preset = request.POST.get("preset", "")
    if preset not in PRESETS:
        messages.error(request, "Choose one of the policies.")
    else:
        session_policy_change(session=session, policy={"preset": preset}, actor=actor_of(request))
        messages.success(request, f"Policy changed to {preset}. It applies from the next compaction on.")
    return redirect("session_compactions", slug=viewer.project.slug, id=session.pk)


@require_POST
@with_writable_session
def session_budget(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """Replace the session's token budget. A blank field restores the default."""
    form, changed = BudgetForm(session, request.POST), ""
    if form.is_valid():
        tokens = form.cleaned_data["tokens"]
        session_budget_change(session=session, tokens=tokens, actor=actor_of(request))
        session.refresh_from_db(fields=["budget_tokens"])
        form, budget = BudgetForm(session), f"{budget_of(session):,} tokens"
        changed = f"Budget changed to {budget}." if tokens else f"Budget reset to the default, {budget}."
        changed += " It applies from the next turn on."
    if wants_fragment(request):
        context = session_context(viewer, session, "session_compactions")
        context |= {"budget": budget_of(session), "budget_form": form, "budget_changed": changed}
        return private(render(request, "sessions/_budget.html", context))
    if not changed:
        return _list(request, viewer, session, budget_form=form)
    messages.success(request, changed)
    return redirect("session_compactions", slug=viewer.project.slug, id=session.pk)


def _answer(request: HttpRequest, viewer: Viewer, session: AgentSession, problem: str = "") -> HttpResponse:
    """Render the updated list; without htmx, redirect to the tab."""
    session.refresh_from_db(fields=["compaction_count"])
    if wants_fragment(request):
        return _list(request, viewer, session, problem)
    if problem:
        messages.error(request, problem)
    return redirect("session_compactions", slug=viewer.project.slug, id=session.pk)


def _list(
    request: HttpRequest,
    viewer: Viewer,
    session: AgentSession,
    problem: str = "",
    *,
    budget_form: BudgetForm | None = None,
) -> HttpResponse:
    context = session_context(viewer, session, "session_compactions")
    before = number_of(request, "before")
    found = compactions_newest(session=session, before=before)
    rows = _with_reasons(viewer, found.rows)
    context |= {
        "policy": policy_summary(session.policy),
        "presets": [(name, preset_meaning(name)) for name in PRESETS],
        "compactions": found,
        "rows": rows,
        "has_reasons": any(reason for _, reason in rows),
        "problem": problem,
        "is_older": before is not None,
        "is_fragment": wants_fragment(request),
        "is_changed": request.method == "POST",
        "last_applied": max(
            (row.number for row in found.rows if row.state == Compaction.State.DONE), default=0
        ),
    }
    if not wants_fragment(request):
        by_client = client_compactions(session_id=session.pk, limit=_BY_CLIENT + 1)
        context |= {"by_client": by_client[:_BY_CLIENT], "more_by_client": len(by_client) > _BY_CLIENT}
        context["pinned"] = [(row, pin_text(row.pin)) for row in pinned_messages(session)]
        context |= {"budget": budget_of(session), "budget_form": budget_form or BudgetForm(session)}
    return page_or_fragment(request, _PAGE, _FRAGMENT, context, status=422 if budget_form else 200)


def _with_reasons(viewer: Viewer, rows: Sequence[Compaction]) -> list[tuple[Compaction, str]]:
    """Return each compaction with its reason, and why no model wrote its recap if one should have."""
    is_expected = summarizer_is_expected(viewer.project)
    return [(row, _reason(row, recap_fallback(row) if is_expected else "")) for row in rows]


def _reason(row: Compaction, fallback: str) -> str:
    missing = f"no model wrote the recap: {fallback}" if fallback else ""
    return "; ".join(filter(None, (row.reason, missing)))
