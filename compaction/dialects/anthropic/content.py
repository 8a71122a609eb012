"""Message content (A8): no empty text, no empty messages, and no trailing whitespace in a prefill."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from compaction.dialects.anthropic.parsing import is_directive
from compaction.invariants.violations import Subject, Violation
from compaction.messages import JSON

#: A JSON value that ends with whitespace, possibly escaped. Non-ASCII characters may be Unicode whitespace.
#: What follows the quote distinguishes it from one that begins a string after a separator.
_BLANK_END = re.compile(rb'(?:\s|\\[nrtf]|\\u....|[\x80-\xff])"\s*[,}\]]')
#: Number of bytes at the end of the last message that contain the end of its text.
_END_BYTES = 4_096


def violations(subject: Subject) -> Iterator[Violation]:
    """Yield each empty message and each empty text block."""
    for position, item in enumerate(subject.items):
        for message in _faults(item):
            yield Violation(rule="A8", position=position, message=message)
    if subject.items and _trimmed(subject.items[-1]) is not None:
        message = "the text of a trailing assistant message must not end with whitespace"
        yield Violation(rule="A8", position=len(subject.items) - 1, message=message)


def without_trailing_whitespace(items: list[dict[str, JSON]]) -> list[dict[str, JSON]]:
    """Return the messages without whitespace at the end of a trailing assistant message."""
    trimmed = _trimmed(items[-1]) if items else None
    return items if trimmed is None else [*items[:-1], trimmed]


def _trimmed(item: JSON) -> dict[str, JSON] | None:
    """Return an assistant message without trailing whitespace, or None if there is none."""
    if not isinstance(item, Mapping) or item.get("role") != "assistant":
        return None
    content = item.get("content")
    if isinstance(content, str):
        text = content.rstrip()
        return None if text == content else {**item, "content": text}
    if not isinstance(content, list) or not content or not isinstance(content[-1], Mapping):
        return None
    block = content[-1]
    if block.get("type") != "text" or not isinstance(block.get("text"), str):
        return None
    text = block["text"].rstrip()
    return None if text == block["text"] else {**item, "content": [*content[:-1], {**block, "text": text}]}


def may_end_with_whitespace(messages: bytes) -> bool:
    """Return whether the last of the joined messages may end with whitespace. Only parsing is conclusive."""
    return _BLANK_END.search(messages, max(0, len(messages) - _END_BYTES)) is not None


def _faults(item: JSON) -> Iterator[str]:
    if not isinstance(item, Mapping):
        yield "the message is not a JSON object"
        return
    content = item.get("content")
    if not isinstance(content, str | list) or not content:
        if not is_directive(item):
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
