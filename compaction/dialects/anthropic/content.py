"""Message content: no empty text and no empty messages (A8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compaction.invariants.violations import Subject, Violation
from compaction.messages import JSON


def violations(subject: Subject) -> Iterator[Violation]:
    """Yield each empty message and each empty text block."""
    for position, item in enumerate(subject.items):
        for message in _faults(item):
            yield Violation(rule="A8", position=position, message=message)


def _faults(item: JSON) -> Iterator[str]:
    if not isinstance(item, Mapping):
        yield "the message is not a JSON object"
        return
    content = item.get("content")
    if not isinstance(content, str | list) or not content:
        yield "the message has no content"
        return
    for block in [content] if isinstance(content, str) else content:
        if _is_empty_text(block):
            yield "empty text block"
        nested = block.get("content") if isinstance(block, Mapping) else None
        if isinstance(nested, list) and any(map(_is_empty_text, nested)):
            yield "empty text block in a tool result"


def _is_empty_text(block: JSON) -> bool:
    if isinstance(block, str):
        return not block.strip()
    if not isinstance(block, Mapping) or block.get("type") != "text":
        return not isinstance(block, Mapping)
    text = block.get("text")
    return not isinstance(text, str) or not text.strip()
