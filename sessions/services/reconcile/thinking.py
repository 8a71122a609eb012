"""Remove the thinking from a request whose prompt it is not bound to."""

from __future__ import annotations

from sessions.store.bodies import json_bytes, json_value
from sessions.store.rawjson import element_spans, list_start

_THINKING = ("thinking", "redacted_thinking")


def without_thinking(body: bytes) -> bytes:
    """Return a Messages request without thinking, every other message unchanged. Raises `BadJson`."""
    spans = element_spans(body, list_start(body, "messages") or 0)
    if not spans:
        return body
    messages = [_without_thinking(body[begin:end]) for begin, end in spans]
    return body[: spans[0][0]] + b",".join(filter(None, messages)) + body[spans[-1][1] :]


def _without_thinking(message: bytes) -> bytes:
    """Return a message without thinking, or b"" if nothing is left."""
    if b"thinking" not in message:
        return message
    value = json_value(message)
    content = value.get("content") if isinstance(value, dict) else None
    if not isinstance(content, list):
        return message
    kept = [block for block in content if not isinstance(block, dict) or block.get("type") not in _THINKING]
    if len(kept) == len(content):
        return message
    return json_bytes({**value, "content": kept}) if kept else b""
