"""Thinking: the prompt contains thinking that is bound to another prompt."""

from __future__ import annotations

from compaction.triggers.base import Trigger

TRIGGER = Trigger(
    name="thinking",
    meaning="Removed thinking that the provider would reject, because the prompt before it had changed.",
    description="The model binds thinking to the preceding prompt, and a compaction was reverted, the prompt "
    "changed while the model was answering, or the agent changed its system prompt or tools. At once; "
    "removes only thinking.",
)
