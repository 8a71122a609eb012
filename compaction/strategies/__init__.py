"""The strategies. To add one, write its module with a `STRATEGY` and list the module here.

Everything else is derived from this list: the order of steps, the presets, the tooltips, the documentation.
Strategies do not import each other.
"""

from __future__ import annotations

from importlib import import_module

from compaction.strategies.base import StepResult, Strategy

__all__ = ["STRATEGIES", "StepResult", "Strategy", "steps_of"]

#: In the order in which a compaction runs them, cheapest first.
_MODULES = (
    "dedupe",
    "supersede",
    "collapse",
    "clip",
    "recency",
    "clear_thinking",
    "recap",
    "offload",
    "drop_oldest",
    "shed",
    "last_resort",
)


def _load(module: str) -> Strategy:
    strategy: Strategy = import_module(f"{__name__}.{module}").STRATEGY
    return strategy


STRATEGIES: dict[str, Strategy] = {strategy.name: strategy for strategy in map(_load, _MODULES)}


def steps_of(preset: str) -> tuple[str, ...]:
    """Return the names of the strategies that a preset runs, in order."""
    return tuple(name for name, strategy in STRATEGIES.items() if preset in strategy.presets)
