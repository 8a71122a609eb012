"""The cost of a replay and of the recorded session at the same prices, in micro-dollars."""

from __future__ import annotations

from compaction.messages import Usage
from compaction.replay.prices import Prices
from compaction.replay.result import Result
from compaction.replay.transcript import HOUR, Transcript

#: Minimum share of calls with reported usage to calculate the actual cost.
_MIN_REPORTED = 0.9


def cost(result: Result, prices: Prices, *, cached: bool = True, one_hour_cache: bool = False) -> int:
    """Return the cost of all calls, without those of a summarizer model.

    With `cached`, the cached part of each prompt is read and the rest is written; otherwise, all is uncached.
    """
    series = result.series
    total = 0.0
    for prompt, known, output in zip(series.prompts, series.cached, series.outputs, strict=True):
        usage = (
            Usage(cache_read_tokens=known, cache_write_tokens=prompt - known, output_tokens=output)
            if cached
            else Usage(uncached_tokens=prompt, output_tokens=output)
        )
        total += prices.of(usage, one_hour_cache=one_hour_cache)
    return round(total)


def actual_cost(transcript: Transcript, prices: Prices) -> int | None:
    """Return the cost of the reported usage, or None if too few calls report it."""
    usages = [call.usage for call in transcript.calls if call.usage]
    if not usages or len(usages) < _MIN_REPORTED * len(transcript.calls):
        return None
    hour = transcript.cache_seconds >= HOUR
    return round(sum(prices.of(usage, one_hour_cache=hour) for usage in usages))
