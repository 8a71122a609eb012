"""Restore: the agent changed its tools while they did not fit the prompt, and the new ones fit."""

from __future__ import annotations

from compaction.triggers.base import Trigger

TRIGGER = Trigger(
    name="restore",
    meaning="Restored the tool definitions: the agent changed them, and the new ones fit.",
    description="Tool definitions were removed for lack of room, the agent changes them, and the new ones "
    "fit. At once; restores only these.",
)
