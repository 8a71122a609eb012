"""Items for OpenAI's Responses API.

The SDK refers to items that OpenAI stores by their ids. The prompt in the span has their content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from telemetry.ai_sdk.parts import (
    JSON,
    arguments,
    is_url,
    media_type,
    option,
    output_of,
    output_parts,
    output_text,
    provider_names,
    provider_type,
    settings,
    url_of,
    words,
)
from telemetry.json_text import objects
from telemetry.values import Conversation

#: The tool whose input is a text.
_CUSTOM = "custom"


def conversation(
    prompt: Sequence[JSON], answer: Sequence[JSON], tools: Sequence[JSON], *, is_bare: bool
) -> Conversation:
    """Return the content of a call.

    `is_bare` is set if the prompt has no ids. Without them, reasoning is not sent in other prompts.
    """
    names = provider_names(tools)
    return Conversation(
        messages=[item for message in prompt for item in _items(message, names, is_bare=is_bare)],
        answers=list(_assistant(answer, names, is_bare=True)),
        tools=list(map(_tool, tools)) or None,
    )


def _items(message: JSON, names: Mapping[str, str], *, is_bare: bool) -> list[JSON]:
    role, content = message["role"], message.get("content")
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    parts = objects(content)
    match role:
        case "assistant":
            return list(_assistant(parts, names, is_bare=is_bare))
        case "tool":
            return [_result(part, names) for part in parts if part.get("type") == "tool-result"]
    return [{"role": role, "content": [_part(part, index) for index, part in enumerate(parts)]}]


def _assistant(parts: Sequence[JSON], names: Mapping[str, str], *, is_bare: bool) -> Iterator[JSON]:
    reasoning: dict[str, JSON] = {}
    for part in parts:
        id = option(part, "itemId")
        id = id if isinstance(id, str) else ""
        own = {"id": id} if id else {}
        match part.get("type"):
            case "text":
                phase = option(part, "phase")
                content = [{"type": "output_text", "text": words(part)}]
                yield {"role": "assistant", "content": content, **own} | ({"phase": phase} if phase else {})
            case "reasoning":
                encrypted = option(part, "reasoningEncryptedContent")
                known = reasoning.get(id)
                item: JSON = known or {"type": "reasoning", **own, "summary": []}
                if encrypted:
                    item["encrypted_content"] = encrypted
                if words(part):
                    item["summary"].append({"type": "summary_text", "text": words(part)})
                if id:
                    reasoning[id] = item
                if known is None and (id or encrypted or is_bare):
                    yield item
            case "tool-call" if not part.get("providerExecuted"):
                yield _call(part, names) | own
            case "tool-result":
                yield _provider_call(part, names)


def _call(part: JSON, names: Mapping[str, str]) -> JSON:
    name, call_id = words(part, "toolName"), words(part, "toolCallId")
    if names.get(name) == _CUSTOM:
        given = part.get("input")
        return {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": _custom(given)}
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments(part)}


def _custom(given: Any) -> str:
    return given if isinstance(given, str) else arguments({"input": given})


def _provider_call(part: JSON, names: Mapping[str, str]) -> JSON:
    """Return the call of a tool that OpenAI ran, whose result the SDK has as an output."""
    name = words(part, "toolName")
    value = output_of(part).get("value")
    action = value.get("action") if isinstance(value, dict) else None
    item = {
        "type": f"{names.get(name, name).removesuffix('_preview')}_call",
        "id": option(part, "itemId") or words(part, "toolCallId"),
        "status": "completed",
    }
    return item | ({"action": action} if action else {})


def _result(part: JSON, names: Mapping[str, str]) -> JSON:
    is_custom = names.get(words(part, "toolName")) == _CUSTOM
    output = output_of(part)
    parts = output_parts(output)
    return {
        "type": "custom_tool_call_output" if is_custom else "function_call_output",
        "call_id": words(part, "toolCallId"),
        "output": output_text(output)
        if parts is None
        else [_part(each, index) for index, each in enumerate(parts)],
    }


def _part(part: JSON, index: int) -> JSON:
    kind, data = media_type(part), words(part, "data")
    if part.get("type") != "file":
        return {"type": "input_text", "text": words(part)}
    is_id = data.startswith("file-")
    if kind.startswith("image/"):
        detail = option(part, "imageDetail")
        image = {"file_id": data} if is_id else {"image_url": url_of(part)}
        return {"type": "input_image", **image} | ({"detail": detail} if detail else {})
    if is_id or is_url(part):
        return {"type": "input_file", "file_id" if is_id else "file_url": data}
    name = words(part, "filename") or f"part-{index}.pdf"
    return {"type": "input_file", "filename": name, "file_data": url_of(part)}


def _tool(tool: JSON) -> JSON:
    if "id" in tool:
        kind = provider_type(tool)
        own = {**settings(tool), "type": kind}
        return own | ({"name": words(tool, "name")} if kind == _CUSTOM else {})
    fields = {name: tool[name] for name in ("name", "description", "strict") if tool.get(name) is not None}
    return {"type": "function", **fields, "parameters": tool.get("inputSchema")}
