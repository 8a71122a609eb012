"""The cost of a replay and of the recorded session at the same prices, in micro-dollars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.messages import Usage
from compaction.replay.prices import Prices
from compaction.replay.result import Result, Totals
from compaction.replay.transcript import HOUR, Transcript

#: Minimum share of calls with reported usage to calculate the actual cost.
_MIN_REPORTED = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Billing:
    """How the calls of a session were billed.

    `written_share` of the input that was not read from the cache was written to it; the rest was uncached.
    `one_hour`: it was cached for one hour. `factor` is the cost according to the log, relative to the prices:
    it differs from 1 for negotiated prices, for example.
    """

    written_share: float = 1.0
    one_hour: bool = False
    factor: float = 1.0

    @classmethod
    def of(cls, transcript: Transcript, prices: Sequence[Prices] | None) -> Billing:
        """Return the billing of a recorded session. Without reported usage, all input is written.

        Without prices, `factor` is 1.
        """
        usages = [call.usage for call in transcript.calls if call.usage]
        written = sum(usage.cache_write_tokens for usage in usages)
        billed = written + sum(usage.uncached_tokens for usage in usages)
        listed, recorded = _costs(transcript, prices) if prices else (0.0, 0.0)
        return cls(
            written_share=written / billed if billed else 1.0,
            one_hour=transcript.cache_seconds >= HOUR,
            factor=recorded / listed if recorded and listed and _has_usage(transcript) else 1.0,
        )


def cost(
    result: Result, prices: Sequence[Prices], *, billing: Billing | None = None, cached: bool = True
) -> int:
    """Return the cost of all calls, each with its `prices`, without the calls of a summarizer model.

    With `cached`, the cached part of each prompt is read, and the rest is billed like in the log; otherwise,
    all is uncached.
    """
    series, billing = result.series, billing or Billing()
    total = 0.0
    for price, prompt, known, output in zip(
        prices, series.prompts, series.cached, series.outputs, strict=True
    ):
        read = known if cached else 0
        written = round(billing.written_share * (prompt - read)) if cached else 0
        usage = Usage(
            uncached_tokens=prompt - read - written,
            cache_read_tokens=read,
            cache_write_tokens=written,
            output_tokens=output,
        )
        total += price.of(usage, one_hour_cache=billing.one_hour)
    return round(billing.factor * total)


def priced(
    result: Result, prices: Sequence[Prices] | None, billing: Billing, *, summaries: int = 0
) -> Totals:
    """Return the sums of one session, without costs if there are no prices.

    `summaries` is the cost of the calls of a summarizer model in micro-dollars.
    """
    if prices is None:
        return Totals.of(result, cost=None, cost_uncached=None)
    cached, uncached = (
        cost(result, prices, billing=billing, cached=cached) + summaries for cached in (True, False)
    )
    return Totals.of(result, cost=cached, cost_uncached=uncached)


def actual_cost(
    transcript: Transcript, prices: Sequence[Prices], *, uses_recorded: bool = True
) -> int | None:
    """Return the cost of the calls according to the log, or None if too few calls report their usage.

    Calls cost the `prices` of their usage if their cost is not recorded, or if `uses_recorded` is false.
    """
    listed, recorded = _costs(transcript, prices)
    return round(recorded if uses_recorded else listed) if _has_usage(transcript) else None


def _has_usage(transcript: Transcript) -> bool:
    """Whether enough calls report their usage to calculate the actual cost."""
    reported = sum(call.usage is not None for call in transcript.calls)
    return reported > 0 and reported >= _MIN_REPORTED * len(transcript.calls)


def _costs(transcript: Transcript, prices: Sequence[Prices]) -> tuple[float, float]:
    """Return the cost of the reported usage at the prices, and according to the log."""
    hour, listed, recorded = transcript.cache_seconds >= HOUR, 0.0, 0.0
    for price, call in zip(prices, transcript.calls, strict=True):
        if call.usage is not None:
            cost = price.of(call.usage, one_hour_cache=hour)
            listed += cost
            recorded += cost if call.cost is None else call.cost
    return listed, recorded
