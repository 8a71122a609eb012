"""Messages as tracing libraries record them, converted to Anthropic's format.

Each library records what its program passes to the provider, or its own classes: OpenAI's and Anthropic's
formats, LangChain's messages, those of Vercel's AI SDK, and the parts of OpenTelemetry's conventions.
Anthropic's format can represent all of their content.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from importers.values import arguments_of, embedded_file, list_of, mapping_of

_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_CALLS = ("tool_use", "tool-call", "tool_call", "function_call")
_RESULTS = ("tool_result", "tool-result", "tool_call_response", "function_call_output")
_TEXTS = ("text", "input_text", "output_text", "refusal")

#: Keys with the content of a message, and others of a message without a role. An object with different keys
#: is a structured answer.
_CONTENT_KEYS = {"content", "parts", "refusal", "tool_calls", "function_call", "additional_kwargs"}
_MESSAGE_KEYS = _CONTENT_KEYS | {"id", "name", "response_metadata", "usage_metadata"}


@dataclass(slots=True)
class Request:
    """What a model call sent. `messages` are in Anthropic's format."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    system: list[str] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)


def parsed(value: Any) -> Any:
    """Return the JSON in a string, as which some exports contain objects and lists."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return orjson.loads(value)
        except ValueError:
            return value
    return value


def request_of_call(value: Any) -> Request:
    """Return the request in the input of a call. Raises one of `MALFORMED` if it cannot be read."""
    request = Request()
    value = parsed(value)
    if isinstance(value, Mapping) and not _is_message(value):
        for key in ("system", "instructions"):
            _add_system(request, value.get(key))
        tools = value.get("tools") or value.get("functions")
        request.tools += [tool for each in list_of(tools) if (tool := _tool(mapping_of(each)))]
        found = [value[key] for key in ("messages", "input", "prompt", "contents") if value.get(key)]
        has_text = value and not request.system and not request.tools
        value = parsed(found[0]) if found else (_text(value) if has_text else None)
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]  # a batch of one
    for message in value if isinstance(value, list) else [value]:
        _add(request, message, "user")
    return request


def answer_of_call(value: Any) -> dict[str, Any] | None:
    """Return the answer in the output of a call, or None. Raises one of `MALFORMED` if it cannot be read."""
    value = parsed(value)
    if isinstance(value, Mapping) and not _is_message(value):
        choices = list_of(value.get("choices"))
        output = value.get("output")
        is_response = isinstance(output, list) or len(value) == 1
        value = mapping_of(choices[0]).get("message") if choices else (is_response and output) or value
    is_messages = isinstance(value, list) and any(_is_message(each) for each in value)
    answers = Request()
    for message in value if is_messages else [value]:
        _add(answers, message, "assistant")
    blocks = [block for body in answers.messages if body["role"] == "assistant" for block in body["content"]]
    return {"role": "assistant", "content": blocks} if blocks else None


def _is_message(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    kind = value.get("type")
    return (
        value.get("role") in _ROLES or kind in _ROLES or kind in (*_CALLS, *_RESULTS) or kind == "reasoning"
    )


def _add(request: Request, message: Any, role: str) -> None:
    """Add a message: text, an object with a role, or an item that is one itself. `role` is the default."""
    if message is None:
        return
    if not isinstance(message, Mapping):
        _append(request, role, _blocks(message))
        return
    kind = message.get("role") or message.get("type")
    role = _ROLES.get(str(kind), "assistant" if kind in (*_CALLS, "reasoning") else role)
    content = message.get("parts") or message.get("content") or message.get("refusal")
    if role == "system":
        _add_system(request, content)
    elif role == "tool" and isinstance(content, Mapping):  # LangChain's callback adds tools to the messages
        request.tools += [tool] if (tool := _tool(content)) else []
    elif role == "tool" and not _has_results(content):
        call = message.get("tool_call_id") or message.get("name") or ""
        _append(request, "user", [_result({"id": call, "result": content, "status": message.get("status")})])
    elif kind in (*_CALLS, *_RESULTS, "reasoning"):
        _append(request, "user" if kind in _RESULTS else "assistant", _blocks([message]))
    else:
        body = role if role == "assistant" else "user"
        is_message = "role" in message or "type" in message or message.keys() <= _MESSAGE_KEYS
        has_content = is_message and not _CONTENT_KEYS.isdisjoint(message)
        _append(request, body, [*_blocks(content if has_content else _text(message)), *_calls(message)])


def _append(request: Request, role: str, blocks: list[dict[str, Any]]) -> None:
    """Add blocks as a message. The results of one answer are one message, and the parts of an answer too."""
    if not blocks:
        return
    last = request.messages[-1] if request.messages else None
    is_same = last is not None and last["role"] == role
    if last and is_same and (role == "assistant" or (_is_results(last["content"]) and _is_results(blocks))):
        last["content"].extend(blocks)
    else:
        request.messages.append({"role": role, "content": blocks})


def _is_results(blocks: list[dict[str, Any]]) -> bool:
    return bool(blocks[0]["type"] == "tool_result")


def _has_results(content: Any) -> bool:
    return isinstance(content, list) and any(mapping_of(part).get("type") in _RESULTS for part in content)


def _add_system(request: Request, content: Any) -> None:
    texts = [block["text"] for block in _blocks(content) if block["type"] == "text"]
    request.system += [text for text in texts if text not in request.system]


def _calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of a message, unless they are also in its content."""
    more = mapping_of(message.get("additional_kwargs"))
    calls = message.get("tool_calls") or more.get("tool_calls")
    if function := mapping_of(message.get("function_call") or more.get("function_call")):
        # The result has the name instead of an id.
        calls = calls or [{"id": function.get("name"), **function}]
    in_content = any(mapping_of(part).get("type") in _CALLS for part in list_of(message.get("content")))
    return [] if in_content else [_call(mapping_of(call)) for call in list_of(calls)]


def _blocks(content: Any) -> list[dict[str, Any]]:
    if not isinstance(content, list):
        text = _text(content)
        return [{"type": "text", "text": text}] if text else []
    return [block for part in content if (block := _block(part))]


def _block(part: Any) -> dict[str, Any] | None:
    if not isinstance(part, Mapping):
        return {"type": "text", "text": _text(part)} if part else None
    kind = part.get("type")
    if kind in _CALLS:
        return _call(part)
    if kind in _RESULTS:
        return _result(part)
    if kind in ("thinking", "reasoning", "redacted_thinking"):
        return _thinking(part)
    if kind in ("image", "image_url", "input_image", "file", "document"):
        return _file(part)
    text = (
        part.get("text") if kind in (*_TEXTS, None) and part.get("text") is not None else part.get("content")
    )
    found = (
        text if isinstance(text, str) else _text({key: part[key] for key in part if key != "cache_control"})
    )
    return {"type": "text", "text": found} if found else None


def _thinking(part: Mapping[str, Any]) -> dict[str, Any] | None:
    if part.get("data") and part.get("type") == "redacted_thinking":
        return {"type": "redacted_thinking", "data": part["data"]}
    summary = [str(mapping_of(each).get("text") or "") for each in list_of(part.get("summary"))]
    text = part.get("thinking") or part.get("text") or part.get("reasoning") or part.get("content")
    found = text if isinstance(text, str) else "\n".join(summary)
    block = {"type": "thinking", "thinking": found}
    if part.get("signature"):
        return {**block, "signature": str(part["signature"])}
    return block if found else None


def _call(part: Mapping[str, Any]) -> dict[str, Any]:
    function = mapping_of(part.get("function")) or part
    keys = ("arguments", "input", "args")
    arguments = parsed(next((function[key] for key in keys if function.get(key) is not None), None))
    id = next((part[key] for key in ("call_id", "toolCallId", "id") if part.get(key)), "")
    name = function.get("name") or function.get("toolName") or ""
    return {"type": "tool_use", "id": str(id), "name": str(name), "input": arguments_of(arguments)}


def _result(part: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("tool_use_id", "call_id", "toolCallId", "id")
    id = next((part[key] for key in keys if part.get(key)), "")
    content = next((part[key] for key in ("content", "output", "result", "response") if part.get(key)), "")
    if isinstance(content, Mapping) and "value" in content and "type" in content:  # of Vercel's AI SDK
        content = content["value"]
    blocks = _blocks(content) if isinstance(content, list) else _text(content)
    result = {"type": "tool_result", "tool_use_id": str(id), "content": blocks}
    is_error = part.get("is_error") or part.get("isError") or part.get("status") == "error"
    return {**result, "is_error": True} if is_error else result


def _file(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return an image or document, of which the trace may contain only the address."""
    source = part.get("source")
    kind = "document" if part.get("type") in ("document", "file") else "image"
    if isinstance(source, Mapping):
        return {"type": kind, "source": dict(source)}
    url = part.get("image_url") or part.get("image") or part.get("url") or part.get("data")
    url = str(mapping_of(url).get("url") or url or "")
    if embedded := embedded_file(url):
        mime, data = embedded
        source = {"type": "base64", "media_type": mime, "data": data}
        return {"type": "image" if mime.startswith("image/") else "document", "source": source}
    if url.startswith(("http://", "https://")):
        return {"type": kind, "source": {"type": "url", "url": url}}
    return {"type": "text", "text": f"[{kind}: {url[:200]}]"}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any] | None:
    function = mapping_of(tool.get("function")) or tool
    schema = function.get("input_schema") or function.get("parameters") or function.get("inputSchema")
    if not function.get("name"):
        return None
    description = str(function.get("description") or "")
    return {
        "name": str(function["name"]),
        "description": description,
        "input_schema": dict(mapping_of(schema)),
    }


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return orjson.dumps(value).decode()
