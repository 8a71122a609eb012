"""Parts of OpenCode's messages as content blocks of Anthropic's format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from importers.values import mapping_of

#: What OpenCode sends in place of a subtask, and of the result of an interrupted tool.
_SUBTASK = "The following tool was executed by the user"
_INTERRUPTED = "[Tool execution was interrupted]"

#: Files of these types are also in the message as text.
_READ_AS_TEXT = ("text/plain", "application/x-directory")


def user_block(part: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a part of a user's message as a content block, or None if it was not sent."""
    if part["type"] == "file":
        return None if part.get("mime") in _READ_AS_TEXT else _file(part)
    if part["type"] == "subtask":
        return {"type": "text", "text": _SUBTASK}
    return None if part.get("ignored") else content_block(part)


def content_block(part: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a part of a message as a content block, or None if it was not sent."""
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]} if part["text"] else None
    if part["type"] == "reasoning" and part["text"]:
        signature = mapping_of(mapping_of(part.get("metadata")).get("anthropic")).get("signature")
        block = {"type": "thinking", "thinking": part["text"]}
        return {**block, "signature": signature} if signature else block
    if part["type"] == "tool":
        arguments = mapping_of(part["state"].get("input"))
        return {"type": "tool_use", "id": str(part["callID"]), "name": part["tool"], "input": arguments}
    return None


def _file(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a file as a block. Only images and PDF files can be part of a message."""
    kinds = {"application/pdf": "document"}
    mime, url = str(part.get("mime") or ""), str(part.get("url") or "")
    kind = "image" if mime.startswith("image/") else kinds.get(mime)
    if kind and url.startswith("data:") and "," in url:
        source = {"type": "base64", "media_type": mime, "data": url.split(",", 1)[1]}
        return {"type": kind, "source": source}
    return {"type": "text", "text": f"[Attached {mime}: {part.get('filename') or 'file'}]"}


def tool_result(part: Mapping[str, Any], *, is_last: bool) -> dict[str, Any] | None:
    """Return the result of a tool, or None if it may still be running."""
    state = part["state"]
    result = {"type": "tool_result", "tool_use_id": str(part["callID"])}
    if state["status"] == "completed":
        files = [_file(file) for file in state.get("attachments") or []]
        output = str(state.get("output") or "")
        return {**result, "content": [{"type": "text", "text": output}, *files] if files else output}
    if state["status"] == "error":
        return {**result, "content": str(state.get("error") or ""), "is_error": True}
    return None if is_last else {**result, "content": _INTERRUPTED, "is_error": True}
