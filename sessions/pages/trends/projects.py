"""The comparison of the viewer's projects."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from accounts.models import Project
from sessions.pages.access import number_of, page, viewer_of
from sessions.pages.trends.parameters import parameters_of, periods
from sessions.selectors.trends.projects import ProjectUsage, project_costs, projects_usage
from sessions.selectors.trends.sums import TrendQuery

#: Projects per page.
_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRow:
    """One row of the table. `previous` is the cost in the previous period, in micro-dollars."""

    project: Project
    usage: ProjectUsage
    previous: int


@require_safe
def trends_projects(request: HttpRequest, slug: str) -> HttpResponse:
    """Render sessions, cost and savings of the viewer's projects in a period, without other filters."""
    viewer = viewer_of(request, slug)
    requested, _ = parameters_of(request)
    current, previous = (TrendQuery(span=each.span) for each in (requested.current, requested.previous))
    parameters = replace(requested, current=current, previous=previous)
    projects = {project.pk: project for project in viewer.projects}
    number = number_of(request, "page", maximum=1_000) or 0
    found = projects_usage(projects=[*projects], span=current.span, first=number * _SHOWN, limit=_SHOWN)
    costs = project_costs(projects=[*projects], span=previous.span)
    context = {
        "viewer": viewer,
        "parameters": parameters,
        "presets": periods(parameters),
        "rows": [
            ProjectRow(project=projects[usage.project], usage=usage, previous=costs.get(usage.project, 0))
            for usage in found.rows
        ],
        "found": found,
        "previous": sum(costs.values()),
        "unused": len(projects) - found.count,
        "previous_page": number - 1 if number else None,
        "next_page": number + 1 if found.count > (number + 1) * _SHOWN else None,
    }
    return page(request, "trends/projects.html", context)
