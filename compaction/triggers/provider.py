"""Provider: the provider compacted the prompt of a request."""

from __future__ import annotations

from compaction.triggers.base import Trigger

TRIGGER = Trigger(
    name="provider",
    meaning="The provider compacted the prompt.",
    description="The provider cleared tool outputs or thinking, or summarized the conversation "
    "(`engine: provider`). Recorded from its response.",
)
