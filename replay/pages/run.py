"""One replay: its progress, its results and the chart of one of its sessions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from compaction.replay.prices import Prices
from replay.models import ReplayRun
from replay.pages.session_result import session_result
from replay.selectors.advice import advice_of
from replay.selectors.price_tables import named_prices
from replay.selectors.results import result_rows, run_find, targets_of
from replay.services import runs
from sessions.pages.access import Viewer, actor_of, page_or_fragment, viewer_of, writer_of

_CHANGES = {"confirm": runs.run_confirm, "cancel": runs.run_cancel, "resume": runs.run_resume}


@require_safe
def replay_run(request: HttpRequest, slug: str, run: UUID) -> HttpResponse:
    """Render the page. htmx polls the results while the run is in progress."""
    viewer = viewer_of(request, slug)
    found = run_of(viewer, run)
    prices, price_error = _prices(request)
    targets = targets_of(found)
    requested = request.GET.get("session", "")
    chosen = next((t for t in targets if str(t.session_id) == requested), None)
    chosen = chosen or next((t for t in targets if t.finished_at and not t.error), None)
    rows = result_rows(found, prices=prices)
    has_advice = found.state == ReplayRun.State.DONE and prices is None
    advice = advice_of(viewer.project) if has_advice else None
    context: dict[str, Any] = {
        "viewer": viewer,
        "run": found,
        "advice": advice if advice and advice.run == found and not advice.basis.needed else None,
        "is_open": found.state in ReplayRun.OPEN,
        "rows": rows,
        "is_unpriced": any(row.total.calls and row.total.cost is None for row in rows),
        "prices": request.GET.get("prices", ""),
        "price_error": price_error,
        "targets": targets,
        "result": session_result(found, chosen, limit=request.GET.get("budget", "")) if chosen else None,
    }
    return page_or_fragment(request, "replay/run.html", "replay/_run.html", context)


@require_POST
def replay_change(request: HttpRequest, slug: str, run: UUID) -> HttpResponse:
    """Confirm, cancel or resume a run."""
    viewer = writer_of(request, slug, action="change a replay")
    found = run_of(viewer, run)
    change = _CHANGES.get(request.POST.get("change", ""))
    if change is None:
        raise Http404("Unknown change")
    try:
        change(run=found, actor=actor_of(request))
    except runs.WrongState as error:
        messages.error(request, f"The replay was not changed: {error}.")
    return redirect("replay_run", slug=slug, run=run)


def run_of(viewer: Viewer, id: UUID) -> ReplayRun:
    """Return a run of the viewer's project. Raises Http404 for any other."""
    run = run_find(project_id=viewer.project.pk, id=id)
    if run is None:
        raise Http404("Replay not found")
    return run


def _prices(request: HttpRequest) -> tuple[Prices | None, str]:
    """Return the price table named in the query string and an error message."""
    text = request.GET.get("prices", "").strip()
    try:
        return (named_prices(text), "") if text else (None, "")
    except ValueError as error:
        return None, str(error)
