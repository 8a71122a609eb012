"""The replay tab of a session: its newest replay, the start form and references to removed content."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from replay.pages.form import ReplayForm
from replay.pages.session_result import session_result
from replay.selectors.results import targets_of_session
from sessions.models import AgentSession
from sessions.pages.access import Viewer, actor_of, page, session_of, viewer_of, writer_of
from sessions.pages.tabs import session_context
from sessions.selectors.compactions.reference_rates import (
    edits_of_session,
    later_references,
    rates_by_strategy,
    rates_by_tool,
)
from sessions.selectors.summarizers import summarizer_missing


@require_http_methods(["GET", "HEAD", "POST"])
def session_replay(request: HttpRequest, slug: str, id: UUID) -> HttpResponse:
    if request.method != "POST":
        viewer = viewer_of(request, slug)
        return _page(request, viewer, session_of(viewer, id), ReplayForm(project=viewer.project))
    viewer = writer_of(request, slug, action="start a replay")
    session = session_of(viewer, id)
    form = ReplayForm(request.POST, project=viewer.project)
    if form.is_valid():
        run = form.run(viewer.project, [session] if session.turn_count else [], actor_of(request))
        if run is not None:
            return redirect("replay_run", slug=slug, run=run.pk)
    return _page(request, viewer, session, form)


def _page(request: HttpRequest, viewer: Viewer, session: AgentSession, form: ReplayForm) -> HttpResponse:
    targets = targets_of_session(session)
    newest = next((t for t in targets if t.finished_at and not t.error), None)
    edits = edits_of_session(session.pk)
    context: dict[str, Any] = session_context(viewer, session, "session_replay") | {
        "form": form,
        "targets": targets,
        "run": newest.run if newest else None,
        "result": session_result(newest.run, newest, limit=request.GET.get("budget", "")) if newest else None,
        "model_missing": summarizer_missing(viewer.project),
        "references": later_references(edits) if session.compaction_count else [],
        "rates": rates_by_strategy(edits) if session.compaction_count else [],
        "rates_by_tool": rates_by_tool(edits) if session.compaction_count else [],
    }
    return page(request, "sessions/replay.html", context)
