"""What sessions of a project share: the review of proposed facts, and how the project uses memory."""

from __future__ import annotations

from datetime import UTC, datetime, time
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from compaction.errors import WorkingMemoryError
from sessions.models import SharedFact
from sessions.pages.access import Viewer, page_or_fragment, viewer_of, wants_fragment
from sessions.selectors.facts import MAX_PENDING, facts_of, facts_pending_count, facts_review
from sessions.selectors.lookups import as_uuid
from sessions.selectors.summarizers import reader_missing
from sessions.services.memory.facts import FactGone, fact_decide, facts_decide, facts_prunable, facts_prune
from sessions.services.memory.proposals import LONGEST

#: Facts of one state that the page shows.
SHOWN = 100

_STATES = (
    (SharedFact.State.PROPOSED, "To review"),
    (SharedFact.State.ACCEPTED, "Accepted"),
    (SharedFact.State.REJECTED, "Rejected"),
)


class FactForm(forms.Form):
    """`expires` is the last day that the fact holds. Without a `text` its words stay."""

    state = forms.ChoiceField(choices=SharedFact.State.choices)
    text = forms.CharField(max_length=LONGEST, required=False)
    expires = forms.DateField(required=False)


@require_safe
def memory(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = viewer_of(request, slug)
    state = _state(request.GET.get("state"))
    facts = facts_review(project_id=viewer.project.pk, state=state, limit=SHOWN + 1)
    context = {
        "viewer": viewer,
        "facts": facts[:SHOWN],
        "is_cut": len(facts) > SHOWN,
        "state": state,
        "states": _STATES,
        "is_full": facts_pending_count(project_id=viewer.project.pk) >= MAX_PENDING,
        "most_waiting": MAX_PENDING,
        "prunable": facts_prunable(project=viewer.project).count(),
        "model_missing": reader_missing(viewer.project) if viewer.project.memory_model else "",
    }
    return page_or_fragment(request, "memory/shared.html", "memory/_shared.html", context)


@require_POST
def memory_fact(request: HttpRequest, slug: str, fact: UUID) -> HttpResponse:
    """Accepts, rejects or rewords a fact, or takes that back. htmx gets the row, a browser the list."""
    viewer = _writer(request, slug)
    rows = facts_of(project_id=viewer.project.pk).filter(pk=fact)
    row = rows.select_related("project").first()
    if row is None:
        raise Http404("no such fact")
    try:
        error = _decided(row, FactForm(request.POST), request)
        now = rows.get()
    except (FactGone, SharedFact.DoesNotExist):
        raise Http404("the fact was pruned") from None
    state = _state(request.POST.get("list"))
    if wants_fragment(request):
        context = {"viewer": viewer, "fact": now, "state": state, "error": error}
        return page_or_fragment(request, "memory/_fact.html", "memory/_fact.html", context)
    if error:
        messages.error(request, f"Not changed: {error}")
    return _to_list(slug, state)


def _decided(fact: SharedFact, form: FactForm, request: HttpRequest) -> str:
    """What was wrong with the decision, "" where nothing was."""
    if not form.is_valid():
        return " ".join(str(error) for errors in form.errors.values() for error in errors)
    day = form.cleaned_data["expires"]
    try:
        fact_decide(
            fact=fact,
            state=form.cleaned_data["state"],
            text=form.cleaned_data["text"].replace("\r\n", "\n") if "text" in form.data else None,
            expires_at=datetime.combine(day, time.max, tzinfo=UTC) if day else None,
            user=request.user,
        )
    except WorkingMemoryError as error:
        return f"{error}."
    return ""


@require_POST
def memory_facts(request: HttpRequest, slug: str) -> HttpResponse:
    """Accepts or rejects those that were selected."""
    viewer = _writer(request, slug)
    ids = [uuid for text in request.POST.getlist("fact")[:SHOWN] if (uuid := as_uuid(text))]
    state = request.POST.get("state")
    if state not in (SharedFact.State.ACCEPTED, SharedFact.State.REJECTED):
        raise Http404("no such decision")
    count = facts_decide(project=viewer.project, ids=ids, state=state, user=request.user)
    messages.success(request, f"{count} {state}." if count else "Nothing was selected.")
    return _to_list(slug, SharedFact.State.PROPOSED)


def _state(asked: str | None) -> str:
    return asked if asked in SharedFact.State.values else SharedFact.State.PROPOSED


def _to_list(slug: str, state: str) -> HttpResponse:
    return redirect(f"{reverse('memory', args=[slug])}?state={state}")


@require_POST
def memory_prune(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = _writer(request, slug)
    count = facts_prune(project=viewer.project, user=request.user)
    messages.success(request, f"{count} deleted." if count else "There was nothing to delete.")
    return redirect("memory", slug=slug)


def _writer(request: HttpRequest, slug: str) -> Viewer:
    viewer = viewer_of(request, slug)
    if not viewer.may_write:
        raise PermissionDenied("Only members who may write can review shared memory.")
    return viewer
