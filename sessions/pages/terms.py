"""What the words of the pages mean, in a line each: presets, the rules of a prompt's lines, triggers."""

from __future__ import annotations

from collections.abc import Mapping

from compaction.strategies import STRATEGIES
from compaction.triggers import TRIGGERS

PRESETS: Mapping[str, str] = {
    "off": "everything is shown; nothing is ever compacted",
    "baseline": "a sliding window: the oldest messages go when the budget is full",
    "masking": "repeated, outdated and large tool outputs become one line, then the oldest turns go",
    "balanced": "repeated, outdated and large tool outputs become one line, then a recap stands "
    "for the oldest turns",
    "aggressive": "as balanced, but earlier and further, and smaller outputs too",
}

RULES: Mapping[str, str] = {
    "verbatim": "As it was pushed.",
    "shown": "As it was pushed.",
    "gone": "Not in the prompt.",
    **{name: strategy.MEANING for name, strategy in STRATEGIES.items()},
}

FIRINGS: Mapping[str, str] = {
    **{trigger.NAME: trigger.MEANING for trigger in TRIGGERS},
    "edit": "A person wrote the recap anew.",
}
