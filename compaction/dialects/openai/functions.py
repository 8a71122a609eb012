"""Calls in the deprecated fields `functions` and `function_call`, which were replaced by tools.

They are parsed as tool calls, and rendered as such in a whole prompt. An edited message that is returned to a
client with such calls must have their form again, because it stays next to the client's own messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction.dialects.openai.parsing import function_id
from compaction.messages import JSON


def with_function_calls(item: JSON) -> JSON:
    """Return a rendered message with its calls or results of functions in the deprecated form."""
    if not isinstance(item, Mapping):
        return item
    name = _name(item)
    if item.get("role") == "tool" and name:
        return {"role": "function", "name": name, "content": item.get("content")}
    calls = item.get("tool_calls")
    if not isinstance(calls, list) or len(calls) != 1:
        return item
    function = calls[0].get("function")
    if not isinstance(function, Mapping) or calls[0].get("id") != function_id(function.get("name")):
        return item
    kept: dict[str, Any] = {field: value for field, value in item.items() if field != "tool_calls"}
    return {**kept, "function_call": function}


def _name(item: Mapping[str, Any]) -> str:
    """Return the name of the function whose result a message has, "" if it is the result of a tool."""
    call_id, prefix = item.get("tool_call_id"), function_id("")
    return call_id.removeprefix(prefix) if isinstance(call_id, str) and call_id.startswith(prefix) else ""
