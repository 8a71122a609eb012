"""What a replay costs by a price table, and what the session really cost by the same one. Micro-dollars."""

from __future__ import annotations

from compaction.messages import Usage
from compaction.replay.prices import Prices
from compaction.replay.result import Result
from compaction.replay.transcript import HOUR, Transcript

#: The share of the calls whose usage a log has to tell for its cost to be that of the session.
_TOLD = 0.9


def cost(result: Result, prices: Prices, *, cached: bool = True, for_an_hour: bool = False) -> int:
    """All calls, without what a summarising model took.

    With `cached`, what the provider still has of a prompt is read and the rest written; else all is uncached.
    """
    series = result.series
    total = 0.0
    for prompt, known, output in zip(series.prompts, series.cached, series.outputs, strict=True):
        usage = (
            Usage(cache_read_tokens=known, cache_write_tokens=prompt - known, output_tokens=output)
            if cached
            else Usage(uncached_tokens=prompt, output_tokens=output)
        )
        total += prices.of(usage, for_an_hour=for_an_hour)
    return round(total)


def actual_cost(transcript: Transcript, prices: Prices) -> int | None:
    """What the calls cost by the usage that the log tells; None where it tells that of too few of them."""
    usages = [call.usage for call in transcript.calls if call.usage]
    if not usages or len(usages) < _TOLD * len(transcript.calls):
        return None
    hour = transcript.cache_seconds >= HOUR
    return round(sum(prices.of(usage, for_an_hour=hour) for usage in usages))
