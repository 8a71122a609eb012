"""Client: the client removed messages from its own context."""

from __future__ import annotations

from compaction.triggers.base import Trigger

TRIGGER = Trigger(
    name="client",
    meaning="The client removed messages from its own context.",
    description="The client removed messages from its own context. Recorded, so that prompts follow it.",
)
