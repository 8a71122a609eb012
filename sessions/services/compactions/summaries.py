"""Asking a model for a summary, and what is told of it: its cost, or why a deterministic recap stands in."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pricing
from accounts.models import Project
from compaction.errors import SummaryError, SummaryRefused
from compaction.messages import Usage, usage_sum
from compaction.recap import Recap
from compaction.recap.spans import Evicted
from compaction.recap.summary import SummaryResult
from sessions.selectors.summarizers import OFF, summarizer, summarizer_missing, summarizer_model

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What became of asking a model.

    Without `result` the recap is deterministic: because none was needed, or for the reason in
    `notes["fallback"]`. `failed` counts for the circuit breaker, `awaits_upgrade` says that a later try
    may do better.
    """

    evicted: Evicted | None = None
    result: SummaryResult | None = None
    model: str = ""
    cost_microusd: int | None = 0
    failed: bool = False
    awaits_upgrade: bool = False
    notes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def given_up(cls, reason: str) -> Attempt:
        """A model is no longer asked, because asking did not get through."""
        return cls(failed=True, awaits_upgrade=True, notes={"fallback": reason})


def summary_attempt(
    *, project: Project, evicted: Evicted | None, previous: Recap | None, instructions: str
) -> Attempt:
    """Asks the project's model for the recap of what would be evicted. Never raises for the model's sake.

    Runs for as long as the model takes: call it outside of any transaction.
    """
    if evicted is None:
        return Attempt()
    if missing := summarizer_missing(project):
        wanted = summarizer_model(project) != OFF
        return Attempt(awaits_upgrade=wanted, notes={"fallback": missing})
    model = summarizer(summarizer_model(project))
    try:
        result = model.summarize(
            evicted.messages, previous=previous, cap_tokens=evicted.cap_tokens, instructions=instructions
        )
    except SummaryError as error:
        log.warning("no summary of %s: %s", model.model, error, exc_info=error.__cause__)
        return Attempt(
            failed=True,
            awaits_upgrade=not isinstance(error, SummaryRefused),
            cost_microusd=pricing.calls_cost(model.model, error.calls),
            notes={
                "fallback": f"{type(error).__name__}: {error}",
                "summary": _told(model.model, error.calls, error.requests),
            },
        )
    told = _told(result.model, result.calls, result.requests)
    return Attempt(
        evicted=evicted,
        result=result,
        model=result.model,
        cost_microusd=pricing.calls_cost(result.model, result.calls),
        notes={"summary": told | {"dropped_identifiers": list(result.dropped_identifiers)}},
    )


def _told(model: str, calls: Sequence[Usage], requests: int) -> dict[str, Any]:
    return {"model": model, "requests": requests, **asdict(usage_sum(calls))}
