"""Replay many logs under many settings, in several processes if that is faster. No database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compaction.adapters.tiktoken_counter import counter
from compaction.replay.costs import Billing, actual_cost, priced
from compaction.replay.prices import Prices
from compaction.replay.result import Totals
from compaction.replay.setting import Setting
from compaction.replay.simulate import replay
from compaction.replay.transcript import Transcript
from importers.reading import LogSource
from replay.offline.logs import log_transcripts
from replay.selectors.price_tables import transcript_prices
from sessions.services.processes import process_pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One session: its sums for each setting, and its actual cost at the same prices.

    `actual` is None if its log reports no usage or its model has no price.
    """

    name: str
    calls: int
    actual: int | None
    totals: tuple[Totals, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The settings to compare. `prices` defaults to the prices of each session's model at its time."""

    settings: tuple[Setting, ...]
    prices: Prices | None = None
    min_tokens: int = 0

    def compare(self, transcript: Transcript) -> Compared:
        fixed = self.prices and (self.prices,) * len(transcript.calls)
        prices = fixed or transcript_prices(transcript)
        billing = Billing.of(transcript, None if self.prices else prices)
        return Compared(
            name=transcript.name,
            calls=len(transcript.calls),
            actual=actual_cost(transcript, prices, uses_recorded=not self.prices) if prices else None,
            totals=tuple(self._totals(transcript, setting, prices, billing) for setting in self.settings),
        )

    def compare_log(self, source: LogSource) -> list[Compared]:
        """Return the sessions of one log with a prompt of at least `min_tokens` (estimated)."""
        return [self.compare(t) for t in log_transcripts(source) if t.peak >= self.min_tokens]

    def _totals(
        self, transcript: Transcript, setting: Setting, prices: Sequence[Prices] | None, billing: Billing
    ) -> Totals:
        budget = setting.limit.budget(transcript)
        return priced(replay(transcript, setting.policy, counter(), budget=budget), prices, billing)


def compare_logs(
    sources: Sequence[LogSource], comparison: Comparison, *, jobs: int
) -> Iterator[list[Compared]]:
    """Yield the results of each log when they are complete."""
    if jobs <= 1 or len(sources) <= 1:
        yield from map(comparison.compare_log, sources)
        return
    with process_pool(min(jobs, len(sources))) as pool:
        try:
            yield from pool.map(comparison.compare_log, sources)
        finally:
            pool.shutdown(cancel_futures=True)
