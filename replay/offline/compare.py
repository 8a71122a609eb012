"""Many sessions of many logs under many settings, in other processes where that pays off. No database."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from compaction.adapters.tiktoken_counter import counter
from compaction.replay import Prices, Setting, Totals, Transcript, actual_cost, cost, replay
from compaction.replay.transcript import HOUR
from importers.reading import LogSource
from replay.offline.logs import log_transcripts
from replay.selectors.price_tables import model_prices


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One session: its sums for each setting, in their order, and what it really cost by the same prices.

    `actual` is None where its log tells no usage or its model has no price.
    """

    name: str
    calls: int
    actual: int | None
    totals: tuple[Totals, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What to compare by. Without `prices` each session is priced by its own model at its own time."""

    settings: tuple[Setting, ...]
    prices: Prices | None = None
    least_tokens: int = 0

    def compare(self, transcript: Transcript) -> Compared:
        prices = self.prices or prices_at_the_time(transcript)
        return Compared(
            name=transcript.name,
            calls=len(transcript.calls),
            actual=actual_cost(transcript, prices) if prices else None,
            totals=tuple(self._totals(transcript, setting, prices) for setting in self.settings),
        )

    def compare_log(self, source: LogSource) -> list[Compared]:
        """The sessions of one log that have a prompt of at least `least_tokens` (estimated)."""
        return [self.compare(t) for t in log_transcripts(source) if t.peak >= self.least_tokens]

    def _totals(self, transcript: Transcript, setting: Setting, prices: Prices | None) -> Totals:
        budget = setting.limit.budget(transcript)
        result = replay(transcript, setting.policy, counter(), budget=budget)
        if prices is None:
            return Totals.of(result, cost=None, cost_uncached=None)
        priced = partial(cost, result, prices, for_an_hour=transcript.cache_seconds >= HOUR)
        return Totals.of(result, cost=priced(), cost_uncached=priced(cached=False))


def prices_at_the_time(transcript: Transcript) -> Prices | None:
    """The prices of the session's model when it began; None where it has none."""
    at = next((call.at for call in transcript.calls if call.at), None)
    return model_prices(transcript.model, at)


def compare_logs(
    sources: Sequence[LogSource], comparison: Comparison, *, jobs: int
) -> Iterator[list[Compared]]:
    """What came of each log, as they are done."""
    if jobs <= 1 or len(sources) <= 1:
        yield from map(comparison.compare_log, sources)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(sources)), mp_context=context) as pool:
        try:
            yield from pool.map(comparison.compare_log, sources)
        finally:
            pool.shutdown(cancel_futures=True)
