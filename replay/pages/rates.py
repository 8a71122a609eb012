"""The page of reference rates: how often agents needed removed content, by strategy, tool and policy."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from sessions.pages.access import page_or_fragment, viewer_of
from sessions.pages.trends.parameters import parameters_of
from sessions.selectors.compactions.reference_rates import (
    PROJECT_SESSIONS,
    edits_of_project,
    rates_by_policy,
    rates_by_strategy,
    rates_by_tool,
    rates_total,
)


@require_safe
def replay_rates(request: HttpRequest, slug: str) -> HttpResponse:
    """Render the page. For htmx, render only the tables, which the trends page loads for its period.

    `tile=1`: the trends page has a tile with their sum.
    """
    viewer = viewer_of(request, slug)
    parameters = parameters_of(request)[0] if "first" in request.GET else None
    edits = edits_of_project(viewer.project.pk, parameters.current if parameters is not None else None)
    rates = rates_by_strategy(edits)
    context = {
        "viewer": viewer,
        "parameters": parameters,
        "sessions": PROJECT_SESSIONS,
        "has_tile": "tile" in request.GET,
        "rates": rates,
        "total": rates_total(rates),
        "rates_by_tool": rates_by_tool(edits),
        "rates_by_policy": rates_by_policy(edits),
    }
    return page_or_fragment(request, "replay/rates.html", "replay/_project_rates.html", context)
