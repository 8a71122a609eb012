"""Restore: the agent needs tools that did not fit the prompt, or has changed them to some that fit."""

from __future__ import annotations

from compaction.triggers.base import Trigger

TRIGGER = Trigger(
    name="restore",
    meaning="Restored the tool definitions: the agent called a tool, or sent definitions that fit.",
    description="Tool definitions were removed for lack of room, and the agent calls a tool for the first "
    "time, or sends definitions that fit. At once; definitions that fit are restored without other edits.",
)
