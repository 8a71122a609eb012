"""The model that summarises in a replay: the project's own, asked under the run's claim, or an estimate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from accounts.models import Project
from compaction.adapters.tiktoken_counter import counter
from compaction.messages import Message, Usage
from compaction.recap import Recap, Summarizer, SummaryResult
from compaction.replay import Prices
from compaction.replay.estimate import EstimatingSummarizer
from replay.models import ReplayRun
from replay.selectors.price_tables import model_prices
from sessions.selectors.summarizers import summarizer, summarizer_model

#: Where a model has no price an estimate would be worth nothing: this one is above all that are asked today.
_DEAREST = Prices.of_rates({"input": 15, "output": 75}, source="no price known")


class Cancelled(Exception):
    """The run is no longer ours: it was cancelled, or another worker has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A run that this worker has. `renew` keeps the claim, and raises `Cancelled` where it is lost."""

    run: ReplayRun
    renew: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asking:
    """Keeps the claim with each question: a model takes its time, and a cancelled run must not pay on."""

    model: Summarizer
    renew: Callable[[], None]

    def summarize(
        self,
        evicted: Sequence[Message],
        *,
        previous: Recap | None = None,
        cap_tokens: int,
        instructions: str = "",
    ) -> SummaryResult:
        self.renew()
        return self.model.summarize(
            evicted, previous=previous, cap_tokens=cap_tokens, instructions=instructions
        )


def asking(claimed: Claimed) -> Summarizer:
    """The project's model."""
    return _Asking(model=summarizer(summarizer_model(claimed.run.project)), renew=claimed.renew)


def estimating() -> Summarizer:
    """Counts what would be asked, and asks nobody."""
    # The SDK takes a second to load, which only the workers have to spend.
    from compaction.adapters.anthropic_summarizer import MAX_INPUT_TOKENS

    return EstimatingSummarizer(counter(), max_input_tokens=MAX_INPUT_TOKENS)


def asked_cost(project: Project, calls: Iterable[Usage]) -> float:
    """What these calls of the project's model cost, micro-dollars."""
    from compaction.adapters.claude import DEFAULT_MODEL

    prices = model_prices(summarizer_model(project) or DEFAULT_MODEL) or _DEAREST
    return sum(map(prices.of, calls))
