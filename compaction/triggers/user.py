"""User: a compaction was requested over the API or on a page."""

from __future__ import annotations

from compaction.triggers.base import Trigger

TRIGGER = Trigger(
    name="user",
    meaning="Requested by a user or the agent.",
    description="Requested over the API or on a page. At once, or in the background if a model summarizes.",
)
