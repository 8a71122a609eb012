"""Let a model summarize evicted messages, and report its cost or why the recap is deterministic instead."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pricing
from accounts.models import Project
from compaction.errors import SummaryError, SummaryRefused
from compaction.messages import Usage, usage_sum
from compaction.recap import Recap
from compaction.recap.spans import Evicted
from compaction.recap.summary import SummaryResult
from redaction import redact
from sessions.selectors.redaction import redaction_of
from sessions.selectors.summarizers import OFF, summarizer, summarizer_missing, summarizer_model

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryAttempt:
    """The outcome of a request for a summary.

    Without `result` the recap is deterministic, because no summary was needed or for the reason in
    `notes["fallback"]`. `failed` counts for the circuit breaker; `awaits_upgrade` means that a later attempt
    may succeed.
    """

    evicted: Evicted | None = None
    result: SummaryResult | None = None
    model: str = ""
    cost_microusd: int | None = 0
    failed: bool = False
    awaits_upgrade: bool = False
    notes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def abandoned(cls, reason: str) -> SummaryAttempt:
        """Return the outcome for when the model is not called again after failed attempts."""
        return cls(failed=True, awaits_upgrade=True, notes={"fallback": reason})


def summary_attempt(
    *, project: Project, evicted: Evicted | None, previous: Recap | None, instructions: str
) -> SummaryAttempt:
    """Let the project's model summarize the evicted messages. Failures of the model do not raise.

    Takes as long as the model takes: call it outside of any transaction.
    """
    if evicted is None:
        return SummaryAttempt()
    if missing := summarizer_missing(project):
        is_enabled = summarizer_model(project) != OFF
        return SummaryAttempt(awaits_upgrade=is_enabled, notes={"fallback": missing})
    model = summarizer(summarizer_model(project))
    try:
        result = model.summarize(
            evicted.messages,
            previous=previous,
            cap_tokens=evicted.cap_tokens,
            instructions=instructions,
            requests=evicted.requests,
        )
    except SummaryError as error:
        log.warning("%s returned no summary: %s", model.model, error, exc_info=error.__cause__)
        return SummaryAttempt(
            failed=True,
            awaits_upgrade=not isinstance(error, SummaryRefused),
            cost_microusd=pricing.calls_cost(model.model, error.calls),
            notes={
                "fallback": f"{type(error).__name__}: {error}",
                "summary": _usage_json(model.model, error.calls, error.requests),
            },
        )
    result = _redacted(result, project)
    usage = _usage_json(result.model, result.calls, result.requests)
    return SummaryAttempt(
        evicted=evicted,
        result=result,
        model=result.model,
        cost_microusd=pricing.calls_cost(result.model, result.calls),
        notes={"summary": usage | {"dropped_identifiers": list(result.dropped_identifiers)}},
    )


def _redacted(result: SummaryResult, project: Project) -> SummaryResult:
    """Redact the secrets that the model made up, or that messages of before a custom pattern contain."""
    written = {"recap": result.recap.to_json(), "dropped": list(result.dropped_identifiers)}
    clean, _ = redact(written, redaction=redaction_of(project))
    if clean is written:
        return result
    return replace(result, recap=Recap.from_json(clean["recap"]), dropped_identifiers=tuple(clean["dropped"]))


def _usage_json(model: str, calls: Sequence[Usage], requests: int) -> dict[str, Any]:
    return {"model": model, "requests": requests, **usage_sum(calls).counts}
