"""Shared memory: the review of the facts that a project's sessions propose to each other."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, time
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from compaction.errors import WorkingMemoryError
from sessions.models import SharedFact
from sessions.pages.access import actor_of, page_or_fragment, viewer_of, wants_fragment, writer_of
from sessions.pages.links import Link
from sessions.selectors.lookups import as_uuid
from sessions.selectors.memory.facts import MAX_PENDING, facts_count_by_state, facts_of, facts_review
from sessions.selectors.summarizers import reader_missing
from sessions.services.memory.facts import FactDeleted, fact_decide, facts_decide, facts_prunable, facts_prune
from sessions.services.memory.proposals import MAX_LENGTH

#: The number of facts on a page.
MAX_FACTS = 100

_STATES = (
    (SharedFact.State.PROPOSED, "To review"),
    (SharedFact.State.ACCEPTED, "Accepted"),
    (SharedFact.State.REJECTED, "Rejected"),
)

_REVIEW = "review shared memory"


class FactForm(forms.Form):
    """A decision on one fact. `expires` is its last valid day; without `text` the fact is not reworded."""

    state = forms.ChoiceField(choices=SharedFact.State.choices)
    text = forms.CharField(max_length=MAX_LENGTH, required=False)
    expires = forms.DateField(required=False)


@require_safe
def memory(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = viewer_of(request, slug)
    state = _state(request.GET.get("state"))
    after = as_uuid(request.GET.get("after", ""))
    facts = facts_review(project_id=viewer.project.pk, state=state, after=after, limit=MAX_FACTS + 1)
    counts = facts_count_by_state(project_id=viewer.project.pk)
    context = {
        "viewer": viewer,
        "facts": facts[:MAX_FACTS],
        "has_more": len(facts) > MAX_FACTS,
        "state": state,
        "states": _states(counts, state),
        "is_full": counts.get(SharedFact.State.PROPOSED, 0) >= MAX_PENDING,
        "most_waiting": MAX_PENDING,
        "prunable": facts_prunable(project=viewer.project).count(),
        "model_missing": reader_missing(viewer.project) if viewer.project.memory_model else "",
    }
    return page_or_fragment(request, "memory/shared.html", "memory/_shared.html", context)


@require_POST
def memory_fact(request: HttpRequest, slug: str, fact: UUID) -> HttpResponse:
    """Accept, reject or reword a fact, or undo that. Returns the row to htmx and the list to a browser."""
    viewer = writer_of(request, slug, action=_REVIEW)
    rows = facts_of(project_id=viewer.project.pk).filter(pk=fact)
    row = get_object_or_404(rows.select_related("project"))
    try:
        error = _decide(row, FactForm(request.POST), request)
        updated = rows.get()
    except (FactDeleted, SharedFact.DoesNotExist):
        raise Http404("Fact not found: it was deleted") from None
    state = _state(request.POST.get("list"))
    if wants_fragment(request):
        counts = facts_count_by_state(project_id=viewer.project.pk)
        context = {
            "viewer": viewer,
            "fact": updated,
            "state": state,
            "states": _states(counts, state),
            "error": error,
            "draft": request.POST.get("text", "") if error else "",
            "is_update": True,
        }
        return page_or_fragment(request, "memory/_fact.html", "memory/_fact.html", context)
    if error:
        messages.error(request, f"The change was not saved: {error}")
    return _to_list(slug, state)


def _decide(fact: SharedFact, form: FactForm, request: HttpRequest) -> str:
    """Apply the decision. Returns an error message, or "" on success."""
    if not form.is_valid():
        return " ".join(str(error) for errors in form.errors.values() for error in errors)
    day = form.cleaned_data["expires"]
    try:
        fact_decide(
            fact=fact,
            state=form.cleaned_data["state"],
            text=form.cleaned_data["text"].replace("\r\n", "\n") if "text" in form.data else None,
            expires_at=datetime.combine(day, time.max, tzinfo=UTC) if day else None,
            actor=actor_of(request),
        )
    except WorkingMemoryError as error:
        return f"the {error.field} {error.reason}."
    return ""


@require_POST
def memory_facts(request: HttpRequest, slug: str) -> HttpResponse:
    """Accept or reject the selected facts."""
    viewer = writer_of(request, slug, action=_REVIEW)
    ids = [uuid for text in request.POST.getlist("fact")[:MAX_FACTS] if (uuid := as_uuid(text))]
    state = request.POST.get("state")
    if state not in (SharedFact.State.ACCEPTED, SharedFact.State.REJECTED):
        raise Http404("Unknown decision")
    count = facts_decide(project=viewer.project, ids=ids, state=state, actor=actor_of(request))
    messages.success(request, f"{_facts(count)} {state}." if count else "Select at least one fact.")
    return _to_list(slug, SharedFact.State.PROPOSED)


def _states(counts: Mapping[str, int], state: str) -> list[Link]:
    """Return a link to the facts in each state."""
    return [
        Link(label=label, address=f"?state={value}", is_current=value == state, count=counts.get(value, 0))
        for value, label in _STATES
    ]


def _state(value: str | None) -> str:
    return value if value in SharedFact.State.values else SharedFact.State.PROPOSED


def _to_list(slug: str, state: str) -> HttpResponse:
    return redirect(f"{reverse('memory', args=[slug])}?state={state}")


@require_POST
def memory_prune(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = writer_of(request, slug, action=_REVIEW)
    count = facts_prune(project=viewer.project, actor=actor_of(request))
    messages.success(request, f"{_facts(count)} deleted." if count else "No expired facts to delete.")
    return redirect("memory", slug=slug)


def _facts(count: int) -> str:
    return f"{count} fact{'' if count == 1 else 's'}"
