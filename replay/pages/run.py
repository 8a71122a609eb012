"""One replay: how far it is, what it found, and the curves of one of its sessions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from compaction.replay import Prices
from replay.models import ReplayRun
from replay.pages.shown import shown_session
from replay.selectors.price_tables import named_prices
from replay.selectors.table import rows_of, run_find, targets_of
from replay.services import runs
from sessions.pages.access import Viewer, page_or_fragment, user_of, viewer_of

_CHANGES = {"confirm": runs.run_confirm, "cancel": runs.run_cancel, "resume": runs.run_resume}


@require_safe
def replay_run(request: HttpRequest, slug: str, run: UUID) -> HttpResponse:
    """The page; for htmx, its moving part: a run that goes on looks again by itself."""
    viewer = viewer_of(request, slug)
    found = run_of(viewer, run)
    prices, problem = _prices(request)
    targets = targets_of(found)
    wanted = request.GET.get("session", "")
    chosen = next((t for t in targets if str(t.session_id) == wanted), None)
    chosen = chosen or next((t for t in targets if t.finished_at and not t.error), None)
    rows = rows_of(found, prices=prices)
    context: dict[str, Any] = {
        "viewer": viewer,
        "run": found,
        "is_open": found.state in ReplayRun.OPEN,
        "rows": rows,
        "is_unpriced": any(row.total.calls and row.total.cost is None for row in rows),
        "prices": request.GET.get("prices", ""),
        "problem": problem,
        "targets": targets,
        "shown": shown_session(found, chosen, limit=request.GET.get("budget", "")) if chosen else None,
    }
    return page_or_fragment(request, "replay/run.html", "replay/_run.html", context)


@require_POST
def replay_change(request: HttpRequest, slug: str, run: UUID) -> HttpResponse:
    """Confirms, ends or takes up a run."""
    viewer = viewer_of(request, slug)
    found = run_of(viewer, run)
    if not viewer.may_write:
        raise PermissionDenied("Only members who may write can change a replay.")
    change = _CHANGES.get(request.POST.get("change", ""))
    if change is None:
        raise Http404("no such change")
    try:
        change(run=found, user=user_of(request))
    except runs.WrongState as error:
        messages.error(request, f"Not changed: {error}.")
    return redirect("replay_run", slug=slug, run=run)


def run_of(viewer: Viewer, id: UUID) -> ReplayRun:
    """The run of the viewer's project. Raises Http404 for any other."""
    run = run_find(project_id=viewer.project.pk, id=id)
    if run is None:
        raise Http404("no such replay")
    return run


def _prices(request: HttpRequest) -> tuple[Prices | None, str]:
    """The price table that the address asks for, or what is wrong with it."""
    text = request.GET.get("prices", "").strip()
    try:
        return (named_prices(text), "") if text else (None, "")
    except ValueError as error:
        return None, str(error)
