"""Messages in numbered attributes, converted to messages with a role and parts.

OpenLLMetry has `gen_ai.prompt.0.role`, OpenInference `llm.input_messages.0.message.role`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from compaction.dialects.media import chat_media
from telemetry.json_text import parsed

JSON = dict[str, Any]

_MOST_MESSAGES = 100_000


def sent(values: Mapping[str, Any]) -> list[JSON]:
    """Return the messages of the request, or an empty list if there are no such attributes."""
    return [*_messages(values, "gen_ai.prompt"), *_messages(values, "llm.input_messages", "message")]


def answered(values: Mapping[str, Any]) -> list[JSON]:
    """Return the messages of the response."""
    return [*_messages(values, "gen_ai.completion"), *_messages(values, "llm.output_messages", "message")]


def tools(values: Mapping[str, Any]) -> list[JSON]:
    """Return the definitions of tools."""
    found = []
    for each in _items(_tree(values, "llm.tools")):
        schema = parsed(_object(each.get("tool")).get("json_schema"))
        if isinstance(schema, dict):
            found.append(schema)
    for each in _items(_tree(values, "llm.request.functions")):
        parameters = parsed(each.get("parameters") or each.get("input_schema"))
        function = {"name": str(each.get("name") or ""), "parameters": parameters}
        found.append({"type": "function", "function": function})
    return found


def _messages(values: Mapping[str, Any], prefix: str, wrapper: str = "") -> Iterator[JSON]:
    for item in _items(_tree(values, prefix)):
        message = _object(item.get(wrapper)) if wrapper else item
        role = str(message.get("role") or "user")
        parts = [*_contents(message), *_calls(message)]
        if role == "tool" or message.get("tool_call_id"):
            call_id = message.get("tool_call_id")
            parts = [
                part
                if part["type"] == "tool_call_response"
                else {"type": "tool_call_response", "id": call_id, "response": part.get("content", "")}
                for part in parts
            ]
        yield {"role": role, "parts": parts}


def _contents(message: JSON) -> Iterator[JSON]:
    content = message.get("content")
    blocks = parsed(content) if isinstance(content, str) and content[:1] == "[" else content
    if isinstance(blocks, list) and all(isinstance(block, dict) and "type" in block for block in blocks):
        yield from map(_part, blocks)
    elif isinstance(content, str) and content:
        yield {"type": "text", "content": content}
    if content in (None, ""):
        for item in _items(_object(message.get("contents"))):
            part = _object(item.get("message_content"))
            kind = str(part.get("type"))
            media = _object(_object(part.get(kind)).get(kind))
            if media.get("url"):
                yield {"type": "uri", "modality": kind, "uri": media["url"]}
            elif isinstance(part.get("text"), str):
                yield {"type": "text", "content": part["text"]}


def _part(block: JSON) -> JSON:
    """Return a block of a provider's message as a part."""
    match block["type"]:
        case "tool_use":
            call = {"id": block.get("id"), "name": block.get("name"), "arguments": block.get("input")}
            return {"type": "tool_call", **call}
        case "tool_result":
            return {
                "type": "tool_call_response",
                "id": block.get("tool_use_id"),
                "response": block.get("content"),
            }
        case "thinking" | "redacted_thinking" | "reasoning":
            return {"type": "reasoning", "content": block.get("thinking") or ""}
    if chat_media(block) is not None:
        return block
    return {"type": "text", "content": block.get("text", block.get("content"))}


def _calls(message: JSON) -> Iterator[JSON]:
    for item in _items(_object(message.get("tool_calls"))):
        call = _object(item.get("tool_call")) or item
        function = _object(call.get("function")) or call
        yield {
            "type": "tool_call",
            "id": call.get("id"),
            "name": function.get("name"),
            "arguments": function.get("arguments"),
        }


def _tree(values: Mapping[str, Any], prefix: str) -> JSON:
    """Return the attributes below a prefix as nested objects."""
    root: JSON = {}
    start = prefix + "."
    for name, value in values.items():
        if not name.startswith(start):
            continue
        node = root
        *path, last = name[len(start) :].split(".")
        for key in path:
            child = node.setdefault(key, {})
            if not isinstance(child, dict):
                break
            node = child
        else:
            node[last] = value
    return root


def _items(tree: JSON) -> list[JSON]:
    """Return the objects below the keys 0, 1, 2 …"""
    found = []
    for index in range(min(len(tree), _MOST_MESSAGES)):
        item = tree.get(str(index))
        if not isinstance(item, dict):
            break
        found.append(item)
    return found


def _object(value: Any) -> JSON:
    return value if isinstance(value, dict) else {}
