"""The cost of a replay and of the recorded session at the same prices, in micro-dollars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.messages import Usage
from compaction.replay.prices import Prices
from compaction.replay.result import Result
from compaction.replay.transcript import HOUR, Transcript

#: Minimum share of calls with reported usage to calculate the actual cost.
_MIN_REPORTED = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheWrites:
    """How a client pays for the input that is not read from the cache.

    `share` of it is written to the cache; the rest is uncached. `one_hour`: it is cached for one hour.
    """

    share: float = 1.0
    one_hour: bool = False

    @classmethod
    def of(cls, transcript: Transcript) -> CacheWrites:
        """Return those of a recorded session. Without reported usage, everything is written."""
        usages = [call.usage for call in transcript.calls if call.usage]
        written = sum(usage.cache_write_tokens for usage in usages)
        billed = written + sum(usage.uncached_tokens for usage in usages)
        return cls(share=written / billed if billed else 1.0, one_hour=transcript.cache_seconds >= HOUR)


def cost(
    result: Result, prices: Sequence[Prices], *, writes: CacheWrites | None = None, cached: bool = True
) -> int:
    """Return the cost of all calls, each with its `prices`, without the calls of a summarizer model.

    With `cached`, the cached part of each prompt is read and the rest is paid for like in the log (`writes`);
    otherwise, all is uncached.
    """
    series, writes = result.series, writes or CacheWrites()
    total = 0.0
    for price, prompt, known, output in zip(
        prices, series.prompts, series.cached, series.outputs, strict=True
    ):
        read = known if cached else 0
        written = round(writes.share * (prompt - read)) if cached else 0
        usage = Usage(
            uncached_tokens=prompt - read - written,
            cache_read_tokens=read,
            cache_write_tokens=written,
            output_tokens=output,
        )
        total += price.of(usage, one_hour_cache=writes.one_hour)
    return round(total)


def actual_cost(transcript: Transcript, prices: Sequence[Prices]) -> int | None:
    """Return the cost of the reported usage, or None if too few calls report it."""
    reported = [
        (price, call.usage) for price, call in zip(prices, transcript.calls, strict=True) if call.usage
    ]
    if not reported or len(reported) < _MIN_REPORTED * len(transcript.calls):
        return None
    hour = transcript.cache_seconds >= HOUR
    return round(sum(price.of(usage, one_hour_cache=hour) for price, usage in reported))
