"""The comparison of the viewer's projects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from accounts.models import Project
from sessions.pages.access import Viewer, number_of, page, viewer_of
from sessions.pages.trends.parameters import Parameters, parameters_of, periods
from sessions.selectors.samples import has_sample
from sessions.selectors.trends.projects import ProjectsUsage, ProjectUsage, project_costs, projects_usage
from sessions.selectors.trends.sums import TrendQuery, first_usage

#: Projects per page.
_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRow:
    """One row of the table. `previous` is the cost in the previous period, in micro-dollars."""

    project: Project
    usage: ProjectUsage
    previous: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The viewer's projects with usage in a period, the most expensive first, and their sums.

    `projects` counts all projects of the viewer. `previous` is the cost of all in the previous period.
    """

    parameters: Parameters
    rows: Sequence[ProjectRow]
    found: ProjectsUsage
    projects: int
    previous: int


def projects_compared(request: HttpRequest, viewer: Viewer) -> Compared:
    """Compare the viewer's projects in the requested period, without filters other than the sample data."""
    requested, _ = parameters_of(request)
    current, previous = (
        TrendQuery(span=each.span, sample=each.sample) for each in (requested.current, requested.previous)
    )
    projects = {project.pk: project for project in viewer.projects}
    found = projects_usage(projects=[*projects], query=current)
    costs = project_costs(projects=[*projects], query=previous)
    return Compared(
        parameters=replace(requested, current=current, previous=previous),
        rows=[
            ProjectRow(project=projects[usage.project], usage=usage, previous=costs.get(usage.project, 0))
            for usage in found.rows
        ],
        found=found,
        projects=len(projects),
        previous=sum(costs.values()),
    )


@require_safe
def trends_projects(request: HttpRequest, slug: str) -> HttpResponse:
    """Render sessions, cost and savings of the viewer's projects. A page after the last shows the last."""
    viewer = viewer_of(request, slug)
    compared = projects_compared(request, viewer)
    count = len(compared.rows)
    last = max(count - 1, 0) // _SHOWN
    number = min(number_of(request, "page") or 0, last)
    projects = [project.pk for project in viewer.projects]
    begin = first_usage(projects=projects)
    context = {
        "viewer": viewer,
        "parameters": compared.parameters,
        "has_sample": has_sample(projects),
        "without_sample": compared.parameters.query_string(sample="exclude"),
        "with_sample": compared.parameters.query_string(sample=""),
        "presets": periods(compared.parameters, begin),
        "rows": compared.rows[number * _SHOWN : (number + 1) * _SHOWN],
        "count": count,
        "found": compared.found,
        "previous": compared.previous,
        "unused": compared.projects - count,
        "previous_page": number - 1 if number else None,
        "next_page": number + 1 if number < last else None,
    }
    return page(request, "trends/projects.html", context)
