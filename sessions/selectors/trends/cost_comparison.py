"""The causes of the change of the cost between two periods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from pricing import Rates
from pricing.cost_change import CostChange, ModelUsage, PeriodUsage, cost_change
from pricing.custom import CustomPrice, rates_at
from sessions.models import CallHistogram
from sessions.selectors.trends.histograms import histogram_rows
from sessions.selectors.trends.sums import TrendQuery, trend_models


@dataclass(frozen=True, slots=True, kw_only=True)
class CostComparison:
    """Two periods, and the effects on their cost. Only calls with usage and price are compared.

    `left_out_before` and `left_out_after` are the numbers of turns without usage or price.
    """

    before: PeriodUsage
    after: PeriodUsage
    change: CostChange
    left_out_before: int
    left_out_after: int


def cost_comparison(
    *, project_id: UUID, custom: Sequence[CustomPrice], previous: TrendQuery, current: TrendQuery
) -> CostComparison | None:
    """Compare the cost of two periods. At most four queries.

    Returns None if the previous period has no calls with usage and price, or no cost.
    """
    before, left_out_before = _usage(project_id, custom, previous)
    if not before.calls or not before.cost_microusd:
        return None
    after, left_out_after = _usage(project_id, custom, current)
    return CostComparison(
        before=before,
        after=after,
        change=cost_change(before, after),
        left_out_before=left_out_before,
        left_out_after=left_out_after,
    )


def _usage(project_id: UUID, custom: Sequence[CustomPrice], query: TrendQuery) -> tuple[PeriodUsage, int]:
    """Return the usage of a period with a price, and the number of turns without usage or price."""
    models = trend_models(project_id=project_id, query=query)
    start, _ = query.span.bounds()
    used = [
        ModelUsage(
            uncached=each.sums.uncached_tokens,
            cache_read=each.sums.cache_read_tokens,
            cache_write=each.sums.cache_write_tokens,
            output=each.sums.output_tokens,
            cost_microusd=each.sums.cost_microusd,
            rates=_rates(rates_at(custom, each.model, start)),
        )
        for each in models
        if each.is_priced
    ]
    # The rollups count a call with usage once in the histogram of prompt sizes, even if it has no price.
    measures = (CallHistogram.Measure.PROMPT,)
    reported = sum(row[-1] for row in histogram_rows("", project_id, query, measures=measures, bucket=""))
    calls = reported - sum(each.sums.unpriced_turns for each in models)
    # A rollup between the queries may have added turns.
    calls = max(calls, int(any(any(each.tokens) for each in used)))
    turns = sum(each.sums.turns for each in models)
    return PeriodUsage(calls=calls, models=used), max(turns - calls, 0)


def _rates(rates: Rates | None) -> tuple[Decimal, Decimal, Decimal, Decimal] | None:
    return (rates.uncached, rates.cache_read, rates.cache_write, rates.output) if rates else None
