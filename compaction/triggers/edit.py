"""Edit: a user rewrote a recap."""

from __future__ import annotations

from compaction.triggers.base import Trigger

TRIGGER = Trigger(
    name="edit",
    meaning="A user rewrote the recap.",
    description="A user saves a new text for a recap. At once.",
)
