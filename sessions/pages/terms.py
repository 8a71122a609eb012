"""The tooltips of recorded names: presets, strategies and triggers, one sentence each."""

from __future__ import annotations

from collections.abc import Mapping

from compaction.strategies import STRATEGIES
from compaction.triggers import TRIGGERS

_PRESETS: Mapping[str, str] = {
    "off": "nothing is ever compacted",
    "baseline": "a sliding window: removes the oldest messages when the budget is full",
    "masking": "reduces repeated, outdated and large tool outputs to one line, then removes old turns",
    "balanced": "reduces repeated, outdated and large tool outputs to one line, then replaces old turns "
    "with a recap",
    "aggressive": "like balanced, but compacts earlier and further, and shortens smaller outputs too",
}

#: Rules other than strategies that determine how a message appears in the prompt.
_RULES: Mapping[str, str] = {
    "verbatim": "Unchanged, as pushed.",
    "shown": "Unchanged, as pushed.",
    "removed": "Not in the prompt.",
    "client": "Removed by the client from its context.",
    "provider": "Removed by the provider, which replaced it with its summary.",
    "provider_summary": "Replaced by a summary that the provider wrote on demand.",
    "memory": "The working memory as of a compaction.",
}


def preset_meaning(name: str) -> str:
    """Return what a policy preset does; "" if it is unknown."""
    return _PRESETS.get(name, "")


def rule_meaning(name: str) -> str:
    """Return what a strategy, or another rule, did to a message; "" if it is unknown."""
    strategy = STRATEGIES.get(name)
    return strategy.meaning if strategy else _RULES.get(name, "")


def trigger_meaning(name: str) -> str:
    """Return why a compaction was triggered; "" if the trigger is unknown."""
    trigger = TRIGGERS.get(name)
    return trigger.meaning if trigger else ""
