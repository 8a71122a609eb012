"""The budget and the policy of a session: its own settings, or the server's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, LiteralString
from uuid import UUID

from django.conf import settings

import pricing
from compaction.errors import PolicyError
from compaction.policy import Policy, ToolRule
from compaction.sizes.breakdown import TokenBreakdown
from compaction.sizes.calibration import Calibration, calibration_learned
from pricing.tokenizers import token_factor
from sessions.models import AgentSession
from sessions.models.session import PUSHED
from sessions.store import bodies
from sessions.store.postgres import rows_fetch

#: The largest budget that a session can have, in tokens.
MAX_BUDGET = 2_000_000_000


def budget_tokens(*, own: int | None, context_window: int | None, model: str) -> int:
    """Return the maximum number of input tokens of the session's prompts."""
    if own is not None:
        return own
    window = context_window or pricing.context_window(model)
    if window is None:
        return int(settings.CONTEXTAPP_DEFAULT_BUDGET)
    return max(window - settings.CONTEXTAPP_MAX_OUTPUT, window // 2)


def window_after(window: int | None, *, model: str, following: str) -> int | None:
    """Return the context window of a session with this `window` and `model` if `following` is called next.

    A log may state a window that differs from the listed one, so it is kept unless the listed ones differ.
    """
    if following == model:
        return window
    listed = pricing.context_window(following)
    return window if listed is None or listed == pricing.context_window(model) else listed


def session_budget(session: AgentSession, *, model: str = "") -> int:
    """Return the budget of the session's prompt, in the provider's tokens. Defaults to its last model."""
    return budget_tokens(
        own=session.budget_tokens, context_window=_window(session, model), model=model or session.model
    )


def default_budget(session: AgentSession) -> int:
    """Return the budget of a session for which none is set."""
    return budget_tokens(own=None, context_window=session.context_window, model=session.model)


def _window(session: AgentSession, model: str) -> int | None:
    return window_after(session.context_window, model=session.model, following=model or session.model)


def calibration_of(data: Mapping[str, Any], *, model: str) -> Calibration:
    """Return the calibration that a session stores, or the initial one of its model's family."""
    return Calibration.from_json(data) if data else Calibration(initial=token_factor(model))


def session_calibration(session: AgentSession, *, model: str = "") -> Calibration:
    """Return the session's calibration: how its provider counts tokens. Defaults to its last model."""
    calibration = calibration_of(session.calibration, model=session.model)
    if not model:
        return calibration
    return calibration_following(
        calibration,
        project_id=session.project_id,
        model=session.model,
        following=model,
        agent=session.agent,
        budget=session_budget(session, model=model),
    )


def calibration_json(calibration: Calibration) -> dict[str, Any]:
    """Return the calibration as the API shows it."""
    return {
        "factor": round(calibration.factor, 3),
        "overhead": calibration.overhead,
        "reports": calibration.reports,
    }


def calibration_initial(*, project_id: UUID, model: str, agent: str, budget: int) -> Calibration:
    """Return what the project's newest sessions with this model and agent learned, else the family's.

    Reads a limited number of sessions, so it takes the same time in a project of any size.
    """
    if not model:
        return Calibration()
    rows = rows_fetch(_LEARNED, {"project": project_id, "model": model, "agent": agent})
    learned = (Calibration.from_json(data) for (data,) in rows if data)
    similar = [calibration for calibration in learned if calibration.reports >= _REPORTS_MIN]
    if not similar:
        return calibration_of({}, model=model)
    return calibration_learned(similar, budget=budget)


def counts_differently(calibration: Calibration, *, model: str, following: str) -> bool:
    """Return whether a session that called `model` needs another calibration if `following` is called next.

    If it has no reports yet, other sessions may have learned more about the following model.
    """
    if following in {"", model}:
        return False
    if not calibration.reports:
        return True
    return bool(model) and token_factor(following) != token_factor(model)


def calibration_following(
    calibration: Calibration, *, project_id: UUID, model: str, following: str, agent: str, budget: int
) -> Calibration:
    """Return the calibration of a session that called `model` if `following` is called next.

    It stays the same if the session has reported usage and both models count tokens equally.
    """
    if not counts_differently(calibration, model=model, following=following):
        return calibration
    initial = calibration_initial(project_id=project_id, model=following, agent=agent, budget=budget)
    return calibration.restarted(initial=initial.factor) if calibration.reports else initial


#: The number of reports from which a calibration is trusted.
_REPORTS_MIN = 2

#: The calibrations for a model and agent among the newest 100 sessions, newest first.
_LEARNED: LiteralString = """
SELECT calibration
  FROM (SELECT model, agent, calibration, last_active_at, id FROM agent_sessions_agentsession
         WHERE project_id = %(project)s ORDER BY last_active_at DESC, id DESC LIMIT 100) AS newest
 WHERE model = %(model)s AND agent = %(agent)s
 ORDER BY last_active_at DESC, id DESC
"""


def prompt_size_json(
    *, shown: TokenBreakdown, context: TokenBreakdown, budget: int, calibration: Calibration
) -> dict[str, Any]:
    """Return the size of the next prompt in estimated tokens, and its occupancy in provider tokens."""
    return {
        "tokens": shown.total,
        "raw_tokens": context.total,
        "budget": budget,
        "occupancy": round(calibration.provider(shown.total) / budget, 4),
    }


def policy_of(data: Mapping[str, Any], *, model: str = "") -> Policy:
    """Return the policy with the stored settings. Defaults to `balanced`.

    Its cache prices default to those of the model, if they are known. Invalid settings are ignored.
    """
    return _policy(bodies.json_bytes(data), model)


#: Content that an agent retrieved deliberately is removed again only together with its whole group.
_EXPANDED = ToolRule(pattern="expand_clip", exempt=True)


@lru_cache(1024)
def _policy(data: bytes, model: str) -> Policy:
    policy = _without_invalid({**_cache_prices(model), **bodies.json_value(data)})
    return replace(policy, tools=(*policy.tools, _EXPANDED))


def _without_invalid(settings: Mapping[str, Any]) -> Policy:
    """Return the policy without settings that are invalid: earlier versions accepted and stored more."""
    try:
        return Policy.from_json(settings)
    except PolicyError as error:
        invalid = error.field.partition(".")[0]
        if invalid not in settings:
            raise
        return _without_invalid({name: value for name, value in settings.items() if name != invalid})


def _cache_prices(model: str) -> dict[str, float]:
    """Return the model's prices of cached tokens as multiples of uncached input; empty if it has none."""
    rates = next(iter(pricing.rates(model)), None)
    if rates is None or not rates.uncached or not rates.cache_read:
        return {}
    prices = {"cache_write_price": rates.cache_write, "cache_read_price": rates.cache_read}
    return {name: round(float(price / rates.uncached), 4) for name, price in prices.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The limit of a prompt in tokens. `name` is "budget" or "window"."""

    name: str
    tokens: int


def limit_of(session: AgentSession, *, model: str = "") -> Limit | None:
    """Return the budget if contextapp serves the session's prompts, else the model's context window.

    Defaults to the session's last model.
    """
    if session.origin == PUSHED or session.budget_tokens is not None or session.compaction_count:
        return Limit(name="budget", tokens=session_budget(session, model=model))
    window = _window(session, model)
    return Limit(name="window", tokens=window) if window is not None else None
