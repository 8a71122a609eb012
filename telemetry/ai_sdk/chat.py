"""Messages for OpenAI's Chat Completions, which most providers accept."""

from __future__ import annotations

from collections.abc import Sequence

from telemetry.ai_sdk.parts import (
    JSON,
    arguments,
    is_url,
    media_type,
    option,
    output_of,
    output_text,
    provider_type,
    url_of,
    words,
)
from telemetry.json_text import objects
from telemetry.media import AUDIO_FORMATS
from telemetry.values import Conversation


def conversation(prompt: Sequence[JSON], answer: Sequence[JSON], tools: Sequence[JSON]) -> Conversation:
    """Return the content of a call."""
    return Conversation(
        messages=[each for message in prompt for each in _messages(message)],
        answers=[_assistant(answer)] if answer else (),
        tools=list(map(_tool, tools)) or None,
    )


def _messages(message: JSON) -> list[JSON]:
    """Return a message of the SDK as messages: each result of a tool is a separate one."""
    role, content = message["role"], message.get("content")
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    parts = objects(content)
    match role:
        case "assistant":
            return [_assistant(parts)]
        case "tool":
            return [_result(part) for part in parts if part.get("type") == "tool-result"]
    if len(parts) == 1 and parts[0].get("type") == "text":
        return [{"role": role, "content": words(parts[0])}]
    return [{"role": role, "content": [_part(part, index) for index, part in enumerate(parts)]}]


def _assistant(parts: Sequence[JSON]) -> JSON:
    said = "".join(words(part) for part in parts if part.get("type") == "text")
    reasoning = "".join(words(part) for part in parts if part.get("type") == "reasoning")
    calls = [_call(part) for part in parts if part.get("type") == "tool-call"]
    message: JSON = {"role": "assistant", "content": said or (None if calls else "")}
    if reasoning:
        message["reasoning_content"] = reasoning
    return message | ({"tool_calls": calls} if calls else {})


def _call(part: JSON) -> JSON:
    function = {"name": words(part, "toolName"), "arguments": arguments(part)}
    return {"id": words(part, "toolCallId"), "type": "function", "function": function}


def _result(part: JSON) -> JSON:
    return {
        "role": "tool",
        "tool_call_id": words(part, "toolCallId"),
        "content": output_text(output_of(part)),
    }


def _part(part: JSON, index: int) -> JSON:
    kind, data = media_type(part), words(part, "data")
    if part.get("type") != "file":
        return {"type": "text", "text": words(part)}
    if kind.startswith("image/"):
        detail = option(part, "imageDetail")
        image = {"url": url_of(part)} | ({"detail": detail} if detail else {})
        return {"type": "image_url", "image_url": image}
    if kind in AUDIO_FORMATS and not is_url(part):
        return {"type": "input_audio", "input_audio": {"data": data, "format": AUDIO_FORMATS[kind]}}
    if data.startswith("file-"):
        return {"type": "file", "file": {"file_id": data}}
    name = words(part, "filename") or f"part-{index}.pdf"
    return {"type": "file", "file": {"filename": name, "file_data": url_of(part)}}


def _tool(tool: JSON) -> JSON:
    if "id" in tool:
        return {"type": provider_type(tool), "name": words(tool, "name")}
    function = {name: tool[name] for name in ("name", "description") if tool.get(name) is not None}
    function["parameters"] = tool.get("inputSchema")
    if tool.get("strict") is not None:
        function["strict"] = tool["strict"]
    return {"type": "function", "function": function}
