"""Helpers for logs in OpenAI's chat format: clean messages, and read usage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compaction.messages import Usage
from pricing.usage import usage_salvage

#: The fields that a message may have in a request. Clients add private ones (`extra`, `turn_idx`, a
#: response's `reasoning_content`), which strict gateways reject.
_KEYS = {
    "system": ("role", "content", "name"),
    "developer": ("role", "content", "name"),
    "user": ("role", "content", "name"),
    "assistant": ("role", "content", "name", "refusal", "tool_calls", "function_call", "audio"),
    "tool": ("role", "content", "tool_call_id"),
    "function": ("role", "content", "name"),
}


def is_chat_message(value: Any) -> bool:
    """Return whether this is a message in OpenAI's chat format."""
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("role"), str)
        and value["role"] in _KEYS
        and (value.get("content") is None or isinstance(value["content"], str | list))
        and ("content" in value or "tool_calls" in value)
    )


def chat_body(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message for a request: content unchanged, without private fields or cache breakpoints.

    Raises KeyError, TypeError or ValueError if it is not a message in this format.
    """
    role = message["role"]
    if role not in _KEYS:
        raise ValueError(f"{role!r} is not a role of chat messages")
    body = {key: message[key] for key in _KEYS[role] if message.get(key) not in (None, [])}
    if calls := message.get("tool_calls"):
        body["tool_calls"] = [tool_call(call) for call in calls]
    if "content" in message or not calls:
        body["content"] = _content(message.get("content"), has_calls=bool(calls))
    return body


def tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool call in OpenAI's format. Also accepts the flat form with `name` and `arguments`."""
    function = call.get("function") or call
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments or {}, ensure_ascii=False)
    return {
        "id": str(call.get("id") or ""),
        "type": "function",
        "function": {"name": str(function["name"]), "arguments": arguments},
    }


def call_ids(body: Mapping[str, Any]) -> list[str]:
    """Return the ids of a message's tool calls."""
    return [call["id"] for call in body.get("tool_calls") or []]


def chat_usage(usage: Any) -> Usage | None:
    """Return the usage that a provider reported (see `pricing.usage`), or None if it has no tokens."""
    found = usage_salvage(usage)[0] if isinstance(usage, Mapping) else Usage()
    return found if found.input_tokens or found.output_tokens else None


def _content(content: Any, *, has_calls: bool) -> Any:
    """Return the content without cache breakpoints.

    They belong to the logged request; a later prompt with these messages could exceed the limit of four.
    """
    if isinstance(content, list):
        return [
            {key: value for key, value in part.items() if key != "cache_control"}
            if isinstance(part, dict)
            else part
            for part in content
        ]
    if content is None and not has_calls:
        return ""
    return content
