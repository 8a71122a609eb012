"""Summarizers for replays: the project's model, or an estimate of its cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from compaction.adapters.tiktoken_counter import counter
from compaction.messages import Message, Usage
from compaction.recap import Recap, Summarizer, SummaryResult
from compaction.replay.estimate import EstimatingSummarizer
from compaction.replay.prices import Prices
from replay.models import ReplayRun
from replay.selectors.price_tables import model_prices
from replay.selectors.run_settings import prices_of
from sessions.selectors.summarizers import summarizer, summarizer_model

#: The rates for models without a known price; higher than those of all supported models.
_FALLBACK_PRICES = Prices.of_rates({"input": 15, "output": 75}, source="no known price")


class ClaimLost(Exception):
    """The run was cancelled, or another worker has claimed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedRun:
    """A run that this worker has claimed. `renew` extends the lease, and raises `ClaimLost`."""

    run: ReplayRun
    renew: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _RenewingSummarizer:
    """Renews the claim before each call, because calls are slow and a cancelled run must not pay for more."""

    model: Summarizer
    renew: Callable[[], None]

    def summarize(
        self,
        evicted: Sequence[Message],
        *,
        previous: Recap | None = None,
        cap_tokens: int,
        instructions: str = "",
        requests: Sequence[Message] = (),
    ) -> SummaryResult:
        self.renew()
        return self.model.summarize(
            evicted,
            previous=previous,
            cap_tokens=cap_tokens,
            instructions=instructions,
            requests=requests,
        )


def project_summarizer(claimed: ClaimedRun) -> Summarizer:
    """Return the summarizer of the project's model."""
    return _RenewingSummarizer(model=summarizer(summarizer_model(claimed.run.project)), renew=claimed.renew)


def estimating_summarizer() -> Summarizer:
    """Return a summarizer that calls no model and only counts the tokens of the requests."""
    # Loading the SDK takes a second, so only workers import it.
    from compaction.adapters.anthropic_summarizer import MAX_INPUT_TOKENS

    return EstimatingSummarizer(counter(), max_input_tokens=MAX_INPUT_TOKENS)


def summaries_cost(run: ReplayRun, calls: Iterable[Usage]) -> float:
    """Return the cost of these calls of the project's model, in micro-dollars."""
    from compaction.adapters.claude import DEFAULT_MODEL

    model = summarizer_model(run.project) or DEFAULT_MODEL
    prices = model_prices(model, custom=prices_of(run)) or _FALLBACK_PRICES
    return sum(map(prices.of, calls))
