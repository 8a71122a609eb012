"""The triggers without a condition: compactions that are requested by name."""

from __future__ import annotations

from compaction.triggers.base import Trigger

USER = Trigger(
    name="user",
    meaning="Requested by a user or the agent.",
    description="Requested over the API or on a page. Immediately, or in the background if a model "
    "summarizes.",
)

UPGRADE = Trigger(
    name="upgrade",
    meaning="A model's recap replaced a deterministic one while the agent paused, in the background.",
    description="A deterministic recap was used because the model failed, and the agent has paused for "
    "longer than the provider keeps its cache. In the background, once.",
    is_background=True,
)

EDIT = Trigger(
    name="edit",
    meaning="A user rewrote the recap.",
    description="A user rewrites a recap. Immediately.",
)

THINKING = Trigger(
    name="thinking",
    meaning="Removed thinking that the provider would reject, because the prompt before it had changed.",
    description="The model binds thinking to the preceding prompt, and a compaction was reverted, the prompt "
    "changed while the model was answering, or the agent changed its system prompt or tools. Immediately; "
    "removes only thinking.",
)

RESTORE = Trigger(
    name="restore",
    meaning="Restored the tool definitions: there was room for them again, or the agent called a tool.",
    description="Tool definitions were removed for lack of room, and a push finds that they fit, for example "
    "after the budget was raised or the agent sent shorter ones, or the agent calls a tool for the first "
    "time. Immediately; definitions that fit are restored without other edits.",
)

CLIENT = Trigger(
    name="client",
    meaning="The client removed messages from its own context.",
    description="The client removed messages from its own context. Recorded, so that prompts follow it.",
)

PROVIDER = Trigger(
    name="provider",
    meaning="The provider compacted the prompt.",
    description="The provider cleared tool outputs or thinking, or summarized the conversation "
    "(`engine: provider`). Recorded from its response.",
)

REQUESTED = (USER, UPGRADE, EDIT, THINKING, RESTORE, CLIENT, PROVIDER)
