"""The settings of a run: pairs of a policy and a limit, numbered limit by limit, and its custom prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from compaction.policy import Policy
from compaction.replay.served import without_model
from compaction.replay.setting import Limit, Setting
from pricing.custom import CustomPrice
from replay.models import ReplayRun
from sessions.selectors.custom_prices import custom_prices

#: Default budgets, as shares of each session's largest prompt.
_RATIOS = (1.0, 0.5, 0.2)


def limits_of(*, ratios: Iterable[float], budgets: Iterable[int]) -> list[Limit]:
    """Return a limit for each budget, shares first. Defaults to `_RATIOS`."""
    limits = [*(Limit(ratio=ratio) for ratio in ratios), *(Limit(tokens=tokens) for tokens in budgets)]
    return limits or [Limit(ratio=ratio) for ratio in _RATIOS]


def limit_json(limit: Limit) -> dict[str, Any]:
    """Return a limit as JSON."""
    return {"ratio": limit.ratio} if limit.ratio is not None else {"tokens": limit.tokens}


def limit_of(data: Mapping[str, Any]) -> Limit:
    """Parse a limit. Raises ValueError if it is neither a ratio nor a number of tokens."""
    return Limit(ratio=data.get("ratio"), tokens=data.get("tokens"))


def settings_of(run: ReplayRun) -> tuple[Setting, ...]:
    """Return the settings of a run in the order of `ReplayResult.setting`."""
    policies = [Policy.from_json(policy) for policy in run.policies]
    if not run.with_model:
        policies = [without_model(policy) for policy in policies]
    limits = [limit_of(limit) for limit in run.limits]
    return tuple(Setting(policy=policy, limit=limit) for limit, policy in product(limits, policies))


def prices_of(run: ReplayRun) -> tuple[CustomPrice, ...]:
    """Return the project's custom prices when the run was created, so that all its results are comparable."""
    if run.custom_prices is None:  # created by an earlier version
        return custom_prices(run.project)
    return tuple(map(CustomPrice.from_json, run.custom_prices))
