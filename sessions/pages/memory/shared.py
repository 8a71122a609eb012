"""What sessions of a project share: the review of proposed facts, and how the project uses memory."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from accounts.services import project_update
from compaction.errors import WorkingMemoryError
from sessions.memory.facts import fact_decide, facts_prunable, facts_prune
from sessions.memory.proposals import LONGEST
from sessions.models import SharedFact
from sessions.pages.access import Viewer, page_or_fragment, viewer_of
from sessions.selectors.facts import facts_review
from sessions.selectors.memory import schema_of

#: Facts of one state that the page shows.
SHOWN = 100

_STATES = (
    (SharedFact.State.PROPOSED, "To review"),
    (SharedFact.State.ACCEPTED, "Accepted"),
    (SharedFact.State.REJECTED, "Rejected"),
)


class FactForm(forms.Form):
    """`expires` is the last day that the fact holds."""

    state = forms.ChoiceField(choices=SharedFact.State.choices)
    text = forms.CharField(max_length=LONGEST)
    expires = forms.DateField(required=False)


@require_safe
def memory(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = viewer_of(request, slug)
    wanted = request.GET.get("state", SharedFact.State.PROPOSED)
    state = wanted if wanted in SharedFact.State.values else SharedFact.State.PROPOSED
    facts = facts_review(project_id=viewer.project.pk, state=state, limit=SHOWN + 1)
    context = {
        "viewer": viewer,
        "facts": facts[:SHOWN],
        "is_cut": len(facts) > SHOWN,
        "state": state,
        "states": _STATES,
        "prunable": facts_prunable(project=viewer.project).count(),
        "field_lines": "\n".join(_line(field) for field in viewer.project.memory_fields),
    }
    return page_or_fragment(request, "memory/shared.html", "memory/_shared.html", context)


@require_POST
def memory_fact(request: HttpRequest, slug: str, fact: UUID) -> HttpResponse:
    """Accepts, rejects or rewords a fact."""
    viewer = _writer(request, slug)
    row = SharedFact.objects.filter(project=viewer.project, pk=fact).select_related("project").first()
    if row is None:
        raise Http404("no such fact")
    form = FactForm(request.POST)
    if not form.is_valid():
        told = " ".join(str(error) for errors in form.errors.values() for error in errors)
        messages.error(request, f"Not changed: {told}")
        return redirect("memory", slug=slug)
    day = form.cleaned_data["expires"]
    try:
        fact_decide(
            fact=row,
            state=form.cleaned_data["state"],
            text=form.cleaned_data["text"].replace("\r\n", "\n"),
            expires_at=datetime.combine(day, time.max, tzinfo=UTC) if day else None,
            user=request.user,
        )
    except WorkingMemoryError as error:
        messages.error(request, f"Not changed: {error}.")
    return redirect("memory", slug=slug)


@require_POST
def memory_prune(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = _writer(request, slug)
    count = facts_prune(project=viewer.project, user=request.user)
    messages.success(request, f"{count} deleted." if count else "There was nothing to delete.")
    return redirect("memory", slug=slug)


@require_POST
def memory_settings(request: HttpRequest, slug: str) -> HttpResponse:
    """Upkeep on or off, and the project's own fields: a name a line, `name: text` for a single text."""
    viewer = viewer_of(request, slug)
    if not viewer.is_owner:
        raise PermissionDenied("Only owners change how a project uses memory.")
    lines = [line.strip() for line in request.POST.get("fields", "")[:2_000].splitlines() if line.strip()]
    known = {field["name"]: field for field in viewer.project.memory_fields}
    fields = [known.get(field["name"], {}) | field for field in map(_field, lines)]
    switches = {f"memory_{name}": request.POST.get(name) == "on" for name in ("upkeep", "proposals")}
    changes = switches | {"memory_fields": fields}
    try:
        schema_of(fields)
    except WorkingMemoryError as error:
        messages.error(request, f"Not saved: {error}.")
        return redirect("memory", slug=slug)
    project_update(project=viewer.project, changes=changes, user=request.user)  # type: ignore[arg-type]
    messages.success(request, "Saved.")
    return redirect("memory", slug=slug)


def _field(line: str) -> dict[str, Any]:
    name, _, kind = line.partition(":")
    return {"name": name.strip(), "single": kind.strip() == "text"}


def _line(field: dict[str, object]) -> str:
    return f"{field['name']}: text" if field.get("single") else str(field["name"])


def _writer(request: HttpRequest, slug: str) -> Viewer:
    viewer = viewer_of(request, slug)
    if not viewer.may_write:
        raise PermissionDenied("Only members who may write can review shared memory.")
    return viewer
