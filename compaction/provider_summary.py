"""Summaries that a provider wrote: Anthropic's compaction blocks and OpenAI's compaction items.

The provider ignores everything before its summary. It must stay first and unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping

from compaction.messages import JSON, Message, Opaque

#: Kind of the blocks and items.
COMPACTION = "compaction"


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


def _has_summary(source: JSON) -> bool:
    """Return whether a summary was written. Anthropic returns null if it failed."""
    return isinstance(source, Mapping) and bool(source.get("content") or source.get("encrypted_content"))
