"""Upgrade: a model's recap replaces a deterministic one, once the agent has paused."""

from __future__ import annotations

from compaction.triggers.base import Trigger

TRIGGER = Trigger(
    name="upgrade",
    meaning="A model's recap replaced a deterministic one while the agent paused, in the background.",
    description="A deterministic recap was used because the model failed, and the agent has paused for "
    "longer than the provider keeps its cache. In the background, once.",
    is_background=True,
)
