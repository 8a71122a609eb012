"""The list of a project's replays and the form to start one."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from replay.pages.form import ProjectReplayForm
from replay.selectors.advice import MIN_SESSIONS, advice_of
from replay.selectors.results import runs_newest, sessions_newest
from sessions.pages.access import Viewer, actor_of, page, viewer_of, writer_of
from sessions.selectors.lists.sessions import sessions_facets
from sessions.selectors.summarizers import summarizer_missing

_MAX_RUNS = 50


@require_http_methods(["GET", "HEAD", "POST"])
def replay_runs(request: HttpRequest, slug: str) -> HttpResponse:
    if request.method != "POST":
        viewer = viewer_of(request, slug)
        return _page(request, viewer, ProjectReplayForm(project=viewer.project))
    viewer = writer_of(request, slug, action="start a replay")
    form = ProjectReplayForm(request.POST, project=viewer.project)
    if form.is_valid():
        sessions = sessions_newest(
            project_id=viewer.project.pk, limit=form.cleaned_data["count"], agent=form.cleaned_data["agent"]
        )
        run = form.run(viewer.project, sessions, actor_of(request))
        if run is not None:
            return redirect("replay_run", slug=slug, run=run.pk)
    return _page(request, viewer, form)


def _page(request: HttpRequest, viewer: Viewer, form: ProjectReplayForm) -> HttpResponse:
    context: dict[str, Any] = {
        "viewer": viewer,
        "has_sessions": form.is_bound or bool(sessions_newest(project_id=viewer.project.pk, limit=1)),
        "form": form,
        "runs": runs_newest(project_id=viewer.project.pk, limit=_MAX_RUNS),
        "advice": advice_of(viewer.project),
        "min_sessions": MIN_SESSIONS,
        "agents": sessions_facets(project=viewer.project).agents,
        "model_missing": summarizer_missing(viewer.project),
    }
    return page(request, "replay/runs.html", context)
