"""What the logs in OpenAI's chat form share: clean messages, usage in disjoint parts, turns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compaction.messages import Usage

from .values import mapping_of, tokens_of

#: What a request may hold in a message. Everything else is a client's own (`extra`, `turn_idx`, a response's
#: `reasoning_content`), and strict gateways reject it.
_KEYS = {
    "system": ("role", "content", "name"),
    "developer": ("role", "content", "name"),
    "user": ("role", "content", "name"),
    "assistant": ("role", "content", "name", "refusal", "tool_calls", "function_call", "audio"),
    "tool": ("role", "content", "tool_call_id"),
    "function": ("role", "content", "name"),
}


def is_chat_message(value: Any) -> bool:
    """Whether this is a message of OpenAI's chat form."""
    return (
        isinstance(value, Mapping)
        and value.get("role") in _KEYS
        and (value.get("content") is None or isinstance(value["content"], str | list))
        and ("content" in value or "tool_calls" in value)
    )


def chat_body(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message as a request holds it: content untouched, without private keys and cache marks.

    Raises KeyError, TypeError or ValueError where it is not a message of this form.
    """
    role = message["role"]
    if role not in _KEYS:
        raise ValueError(f"no chat message has the role {role!r}")
    body = {key: message[key] for key in _KEYS[role] if message.get(key) not in (None, [])}
    if calls := message.get("tool_calls"):
        body["tool_calls"] = [tool_call(call) for call in calls]
    if "content" in message or not calls:
        body["content"] = _content(message.get("content"), has_calls=bool(calls))
    return body


def tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """One call, in the flat form (`name`, `arguments`) or OpenAI's; arguments become JSON text."""
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
    """The ids of a message's tool calls."""
    return [call["id"] for call in body.get("tool_calls") or []]


def chat_usage(usage: Any) -> Usage | None:
    """Usage as OpenAI, LiteLLM, DeepSeek and Anthropic report it, in disjoint parts; None where none is.

    OpenAI's `prompt_tokens` (and LiteLLM's) include what was read from and written to the cache;
    Anthropic's `input_tokens` do not, and where they are OpenAI's Responses' they do.
    """
    if not isinstance(usage, Mapping):
        return None
    details = mapping_of(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
    read = tokens_of(usage, "cache_read_input_tokens", "prompt_cache_hit_tokens", "cached_input_tokens")
    read = read or tokens_of(details, "cached_tokens")
    write = tokens_of(usage, "cache_creation_input_tokens") or tokens_of(details, "cache_creation_tokens")
    total = tokens_of(usage, "prompt_tokens", "input_tokens")
    output = tokens_of(usage, "completion_tokens", "output_tokens")
    if total + read + write + output == 0:
        return None
    apart = "prompt_tokens" not in usage and "cache_read_input_tokens" in usage
    uncached = total if apart or read + write > total else total - read - write
    return Usage(
        uncached_tokens=uncached, cache_read_tokens=read, cache_write_tokens=write, output_tokens=output
    )


def _content(content: Any, *, has_calls: bool) -> Any:
    """The content, without the cache marks: those belong to the request that it was part of, and a later
    prompt made of such messages would hold more than the four that a provider takes."""
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
