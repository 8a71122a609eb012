"""Messages for Anthropic's Messages API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from telemetry.ai_sdk.parts import (
    JSON,
    is_url,
    media_type,
    option,
    output_of,
    output_parts,
    output_text,
    plain_text,
    provider_names,
    provider_type,
    settings,
    snake_case,
    words,
)
from telemetry.json_text import objects, parsed
from telemetry.values import Conversation

_THINKING = frozenset({"thinking", "redacted_thinking"})


def conversation(
    prompt: Sequence[JSON], answer: Sequence[JSON], tools: Sequence[JSON], *, is_bare: bool
) -> Conversation:
    """Return the content of a call. Consecutive messages of one role are one message.

    `is_bare` is set if the prompt has no signatures. Without them, reasoning is not sent in other prompts.
    """
    names = provider_names(tools)
    system: list[JSON] = []
    messages: list[JSON] = []
    for role, group in groupby(prompt, key=_role):
        found = list(group)
        if role == "system":
            texts = [{"type": "text", "text": words(message, "content")} for message in found]
            if system:
                messages += [{"role": role, "content": [text]} for text in texts]
            else:
                system = texts
            continue
        parts = [part for message in found for part in objects(message.get("content"))]
        content = _assistant(parts, names, is_bare=is_bare) if role == "assistant" else _user(parts)
        if content:
            messages.append({"role": role, "content": content})
    said = _assistant(answer, names, is_bare=True)  # its signature is in the prompt of the next call
    return Conversation(
        messages=messages,
        answers=[{"role": "assistant", "content": said}] if said else (),
        system=system or None,
        tools=list(map(_tool, tools)) or None,
    )


def _role(message: JSON) -> str:
    """Return the role of a message: results of tools are in messages of the user."""
    role = str(message["role"])
    return "user" if role == "tool" else role


def _user(parts: Sequence[JSON]) -> list[JSON]:
    found = []
    for part in parts:
        match part.get("type"):
            case "text" | "file":
                found.append(_block(part))
            case "tool-result":
                found.append(_result(part))
    return found


def _block(part: JSON) -> JSON:
    if part.get("type") != "file":
        return {"type": "text", "text": words(part)}
    kind, data = media_type(part), words(part, "data")
    source: JSON = {"type": "base64", "media_type": kind, "data": data}
    if is_url(part):
        source = {"type": "url", "url": data}
    elif kind == "text/plain":
        source = {"type": "text", "media_type": kind, "data": plain_text(data)}
    if kind.startswith("image/"):
        return {"type": "image", "source": source}
    title = option(part, "title") or words(part, "filename")
    return {"type": "document", "source": source} | ({"title": title} if title else {})


def _result(part: JSON) -> JSON:
    output = output_of(part)
    parts = output_parts(output)
    content: Any = (
        output_text(output) if parts is None else [_block({**each, "filename": ""}) for each in parts]
    )
    block = {"type": "tool_result", "tool_use_id": words(part, "toolCallId"), "content": content}
    return block | ({"is_error": True} if str(output.get("type")).startswith("error-") else {})


def _assistant(parts: Sequence[JSON], names: Mapping[str, str], *, is_bare: bool) -> list[JSON]:
    """Return the blocks of an answer. As in the SDK, tool calls follow the text after each thinking block."""
    found: list[JSON] = []
    calls: list[JSON] = []
    for block in _blocks(parts, names, is_bare=is_bare):
        if block["type"] == "tool_use":
            calls.append(block)
            continue
        if block["type"] in _THINKING:
            found += calls
            calls = []
        found.append(block)
    return found + calls


def _blocks(parts: Sequence[JSON], names: Mapping[str, str], *, is_bare: bool) -> Iterator[JSON]:
    for part in parts:
        match part.get("type"):
            case "text":
                yield {"type": "text", "text": words(part)}
            case "reasoning":
                signature, data = option(part, "signature"), option(part, "redactedData")
                if signature:
                    yield {"type": "thinking", "thinking": words(part), "signature": signature}
                elif data:
                    yield {"type": "redacted_thinking", "data": data}
                elif is_bare and words(part):
                    yield {"type": "thinking", "thinking": words(part)}
            case "tool-call":
                yield _call(part, names)
            case "tool-result":
                yield _provider_result(part, names)


def _call(part: JSON, names: Mapping[str, str]) -> JSON:
    name, given = words(part, "toolName"), parsed(part.get("input"))
    block = {"id": words(part, "toolCallId"), "name": name, "input": {} if given is None else given}
    if not part.get("providerExecuted"):
        return {"type": "tool_use", **block}
    if server := option(part, "serverName"):
        return {"type": "mcp_tool_use", **block, "server_name": server}
    block["name"] = names.get(name, name)
    kind = given.get("type") if isinstance(given, dict) else None
    if kind in ("bash_code_execution", "text_editor_code_execution"):  # perhaps not hashable
        block |= {"name": kind, "input": {key: each for key, each in given.items() if key != "type"}}
    return {"type": "server_tool_use", **block}


def _provider_result(part: JSON, names: Mapping[str, str]) -> JSON:
    """Return the result of a tool that Anthropic ran. The SDK writes the names of its fields differently."""
    value, name = snake_case(output_of(part).get("value")), words(part, "toolName")
    kind = value.get("type") if isinstance(value, dict) else None
    tool = re.sub(r"_(tool_)?result(_error)?$", "", str(kind)) if kind else names.get(name, name)
    if option(part, "serverName"):
        tool = "mcp"
    return {"type": f"{tool}_tool_result", "tool_use_id": words(part, "toolCallId"), "content": value}


def _tool(tool: JSON) -> JSON:
    if "id" in tool:
        name = provider_names([tool])[words(tool, "name")]
        return {**settings(tool), "type": provider_type(tool), "name": name}
    fields = {name: tool[name] for name in ("name", "description") if tool.get(name) is not None}
    return {**fields, "input_schema": tool.get("inputSchema")}
