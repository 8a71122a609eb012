"""Why the cost changed: the causes and their effects, as a fragment of the trends page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from pricing.cost_change import PeriodUsage
from sessions.pages.access import page_or_fragment, viewer_of, wants_fragment
from sessions.pages.figures import percent, short_number
from sessions.pages.trends.parameters import Parameters, parameters_of, today_of
from sessions.selectors.custom_prices import custom_prices
from sessions.selectors.trends.cost_comparison import CostComparison, cost_comparison
from sessions.selectors.trends.sums import first_usage

_GROUPS = "groups-title"
_PROMPTS = "prompt-sizes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One cause, its effect on the cost in micro-dollars, its values in both periods, and where to see it."""

    name: str
    microusd: int
    values: str
    url: str


@require_safe
def trends_cost_change(request: HttpRequest, slug: str) -> HttpResponse:
    """Render the causes of the change in cost, the largest effect first."""
    viewer = viewer_of(request, slug)
    parameters, _ = parameters_of(request)
    begin = first_usage(projects=[viewer.project.pk])
    comparison = None
    if previous_is_complete(parameters, begin):
        comparison = cost_comparison(
            project_id=viewer.project.pk,
            custom=custom_prices(viewer.project),
            previous=parameters.previous,
            current=parameters.current,
        )
    # In the trends page, links lead to other parts of it.
    page = "" if wants_fragment(request) else reverse("trends", args=[slug])
    causes = _causes(comparison, parameters, page) if comparison is not None else []
    context = {
        "viewer": viewer,
        "parameters": parameters,
        "comparison": comparison,
        "causes": sorted(causes, key=lambda cause: -abs(cause.microusd)),
    }
    return page_or_fragment(request, "trends/cost_change.html", "trends/_cost_change.html", context)


def previous_is_complete(parameters: Parameters, begin: datetime | None) -> bool:
    """Return whether the previous period has ended, and the project's usage began on its first day or before.

    `begin` is the time of the first usage.
    """
    span = parameters.previous.span
    return (
        begin is not None
        and begin.astimezone(span.zone).date() <= span.first
        and span.last < today_of(span.zone)
    )


def _causes(comparison: CostComparison, parameters: Parameters, page: str) -> list[Cause]:
    change, before, after = comparison.change, comparison.before, comparison.after
    here = f"{page}?{parameters.query_string()}" if page else ""
    by_model = f"{page}?{parameters.query_string(group='model', split='')}#{_GROUPS}"
    causes = [
        Cause(
            name="Calls",
            microusd=change.calls,
            values=f"{before.calls:,} → {after.calls:,}",
            url=f"{here}#{_GROUPS}",
        ),
        Cause(
            name="Input per call",
            microusd=change.input_per_call,
            values=f"{_mean(before.input_tokens, before)} → {_mean(after.input_tokens, after)} tokens",
            url=f"{here}#{_PROMPTS}",
        ),
        Cause(
            name="Caching",
            microusd=change.caching,
            values=_caching(before, after),
            url=f"{here}#{_GROUPS}",
        ),
        Cause(
            name="Output per call",
            microusd=change.output_per_call,
            values=f"{_mean(before.tokens[-1], before)} → {_mean(after.tokens[-1], after)} tokens",
            url=f"{here}#{_GROUPS}",
        ),
        Cause(name="Prices and models", microusd=change.prices, values="mean price per token", url=by_model),
    ]
    if change.without_tokens:
        name = "Costs reported without tokens"
        causes.append(Cause(name=name, microusd=change.without_tokens, values="", url=by_model))
    return causes


def _mean(tokens: int, period: PeriodUsage) -> str:
    return short_number(tokens / period.calls) if period.calls else "–"


def _caching(before: PeriodUsage, after: PeriodUsage) -> str:
    """Return the shares of the input tokens that were read from the cache and, if any were, written to it."""

    def shares(kind: int) -> str:
        both = (before, after)
        return " → ".join(
            percent(each.tokens[kind], each.input_tokens) if each.input_tokens else "–" for each in both
        )

    is_written = before.tokens[2] or after.tokens[2]
    return f"{shares(1)} hits" + (f", {shares(2)} writes" if is_written else "")
