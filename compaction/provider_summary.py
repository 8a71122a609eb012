"""Summaries that a provider wrote: Anthropic's compaction blocks and OpenAI's compaction items.

The provider ignores everything before its summary. It must stay first and unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from compaction.edits import Edit
from compaction.messages import JSON, Message, Opaque, Role

#: Kind of the blocks and items.
COMPACTION = "compaction"

#: Strategy of edits that replace messages with a block that Anthropic wrote on demand. Their text is the
#: block as JSON: it must be sent exactly as the provider returned it.
ON_DEMAND = "provider_summary"


def is_compaction(message: Message) -> bool:
    """Return whether a message begins with the provider's summary of everything before it."""
    return any(
        isinstance(part, Opaque) and part.kind == COMPACTION and _has_summary(part.source)
        for part in message.parts[:1]
    )


def begins_with_summary(item: Mapping[str, JSON]) -> bool:
    """Return whether an Anthropic message begins with a compaction block."""
    content = item.get("content")
    first = content[0] if isinstance(content, list) and content else None
    return isinstance(first, Mapping) and first.get("type") == COMPACTION


def summary_text(message: Message) -> str:
    """Return the readable text of the summary, "" if it is opaque."""
    for part in message.parts[:1]:
        if isinstance(part, Opaque) and isinstance(part.source, Mapping):
            content = part.source.get("content")
            return content if isinstance(content, str) else ""
    return ""


def is_signed(block: JSON) -> bool:
    """Return whether this is a block that Anthropic wrote on demand, which has a signature."""
    return isinstance(block, Mapping) and block.get("type") == COMPACTION and bool(block.get("signature"))


def begins_with_signed(item: JSON) -> bool:
    """Return whether an Anthropic message begins with a block that was written on demand."""
    content = item.get("content") if isinstance(item, Mapping) else None
    return isinstance(content, list) and bool(content) and is_signed(content[0])


def block_message(edit: Edit) -> Message:
    """Return the message of an edit by `ON_DEMAND`: the block, as a message of the assistant."""
    block = json.loads(edit.text)
    return Message(
        position=edit.position,
        role=Role.ASSISTANT,
        parts=(Opaque(kind=COMPACTION, source=block),),
        tokens=edit.tokens_after,
    )


def replacement_text(edit: Edit) -> str:
    """Return the text with which an edit replaces content, for people: that of the summary in a block."""
    if edit.strategy != ON_DEMAND or not edit.text:
        return edit.text
    text = json.loads(edit.text).get("content")
    return text if isinstance(text, str) else ""


def _has_summary(source: JSON) -> bool:
    """Return whether a summary was written. Anthropic returns null if it failed."""
    return isinstance(source, Mapping) and bool(source.get("content") or source.get("encrypted_content"))
