"""Render messages as contents of Gemini's API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.dialects.blocks import as_text, note_of, server_tool_text
from compaction.dialects.declarations import (
    FUNCTIONS,
    NO_ARGUMENTS,
    TEXT_INPUT,
    functions_of,
    is_gemini_tool,
)
from compaction.dialects.gemini.kinds import (
    CALL,
    MODEL,
    NAME,
    RESPONSE,
    USER,
    function_name,
    spelled,
    value_of,
)
from compaction.dialects.gemini.parsing import ERROR, response_text, text_field
from compaction.dialects.media import gemini_media, result_blocks
from compaction.invariants.pairs import calls_of
from compaction.jsontext import dumps, loads_object
from compaction.messages import JSON, Message, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult

Item = dict[str, JSON]


@dataclass(frozen=True, slots=True)
class Called:
    """A called function: its name and the id of the call, None if it has none."""

    name: str
    id: str | None


def message_json(message: Message, called: Mapping[str, Called] | None = None) -> list[Item]:
    """Render one message: none if it has no content. `called` are the calls before it, by `call_id`."""
    native = message.format == NAME
    if native and not message.patched and message.source is not None:
        return [dict(message.source)]
    parts: list[Item] = []
    media: list[Item] = []
    for part in message.parts:
        if (made := _part(part, native, called or {})) is not None:
            parts.append(made)
        if isinstance(part, ToolResult) and part.media_tokens and not _has_source(part, native):
            media += _media(part)
    role = MODEL if message.role is Role.ASSISTANT else USER
    return [{"role": role, "parts": parts + media}] if parts else []


def _has_source(part: Part, native: bool) -> bool:
    return native and isinstance(part.source, Mapping)


def _part(part: Part, native: bool, called: Mapping[str, Called]) -> Item | None:
    source = part.source if _has_source(part, native) else None
    if source is not None and not getattr(part, "patched", False):
        return None if isinstance(part, Text) and not part.text else dict(source)
    match part:
        case Text(text=text):
            return {**(source or {}), "text": text} if text else None
        case ToolCall(server=True) | ToolResult(server=True):
            return {"text": server_tool_text(part)}
        case ToolCall():
            return _call(part, source)
        case ToolResult():
            return _response(part, source, called)
        case Opaque(kind=kind):
            block = part.source if isinstance(part.source, Mapping) else {}
            return gemini_media(block) or {"text": note_of(part.source, kind)}
        case Thinking():
            return None


def _call(part: ToolCall, source: Mapping[str, Any] | None) -> Item:
    arguments = loads_object(part.arguments)
    field = spelled(source, CALL) if source is not None else None
    if source is None or field is None:
        return {CALL: {"id": part.call_id, "name": function_name(part.name), "args": arguments}}
    given = source[field] if isinstance(source[field], Mapping) else {}
    if isinstance(given.get("args"), Mapping) and dumps(given["args"]) == part.arguments:
        arguments = given["args"]
    return {**source, field: {**given, "name": function_name(part.name), "args": arguments}}


def _response(part: ToolResult, source: Mapping[str, Any] | None, called: Mapping[str, Called]) -> Item:
    field = spelled(source, RESPONSE) if source is not None else None
    if source is None or field is None:
        call = called.get(part.call_id) or Called(part.call_id, part.call_id)
        made: Item = {"name": function_name(call.name), "response": {_key(part): part.text}}
        return {RESPONSE: {"id": call.id, **made} if call.id else made}
    given = source[field] if isinstance(source[field], Mapping) else {}
    response = given.get("response")
    if not isinstance(response, Mapping) or response_text(response) != part.text:
        response = {text_field(response) or _key(part): part.text}
    kept = {name: value for name, value in given.items() if name != "parts" or part.media_tokens}
    name = function_name(given.get("name"))
    return {**source, field: {**kept, "name": name, "response": response}}


def _key(part: ToolResult) -> str:
    return ERROR if part.is_error else "output"


def _media(part: ToolResult) -> list[Item]:
    """Return the media of another dialect's tool result as parts that follow the responses."""
    blocks = result_blocks(part.source)
    found = [made for block in blocks if (made := gemini_media(block)) is not None]
    return [{"text": f"[media in the result of {part.call_id}]"}, *found] if found else []


def conversation(messages: Sequence[Message]) -> list[Item]:
    """Render the `contents` of a request.

    Consecutive messages with calls become one content, and so do those with results (G1).
    """
    out: list[Item] = []
    called: dict[str, Called] = {}
    follows_results = False
    calls_at: int | None = None  # the content with the calls of a response that has several contents
    for message in messages:
        for call in message.tool_calls:
            called[call.call_id] = _called(call, message.format == NAME)
        items = message_json(message, called)
        if not items:
            continue
        [item] = items
        answers, is_model = message.role is Role.TOOL, message.role is Role.ASSISTANT
        has_calls = bool(calls_of(message))
        first = calls_at if has_calls and is_model else len(out) - 1 if answers and follows_results else None
        if first is not None:
            item = {**out[first], "parts": [part for each in (*out[first:], item) for part in each["parts"]]}
            del out[first:]
        out.append({**item, "parts": _responses_first(item["parts"])} if answers else item)
        follows_results = answers
        calls_at = (len(out) - 1 if has_calls else calls_at) if is_model else None
    return out


def _called(call: ToolCall, native: bool) -> Called:
    source = value_of(call.source, CALL) if _has_source(call, native) else None
    id = source.get("id") if isinstance(source, Mapping) else None if native else call.call_id
    return Called(call.name, id if isinstance(id, str) else None)


def _responses_first(parts: Sequence[Item]) -> list[Item]:
    return sorted(parts, key=lambda part: spelled(part, RESPONSE) is None)


def system_instruction(given: JSON, messages: Sequence[Message]) -> JSON:
    """Return the `systemInstruction`: the given value, then the text of the leading system messages."""
    texts = [part.text for each in messages for part in each.parts if isinstance(part, Text) and part.text]
    if isinstance(given, Mapping) and isinstance(given.get("parts"), list):
        return {**given, "parts": [*given["parts"], *map(_text, texts)]} if texts else dict(given)
    blocks = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    own = [as_text(block.get("text") if isinstance(block, Mapping) else block) for block in blocks]
    parts = [_text(text) for text in (*own, *texts) if text.strip()]
    return {"parts": parts} if parts else None


def _text(text: str) -> Item:
    return {"text": text}


def tools_json(tools: JSON) -> list[JSON]:
    """Render tool definitions. Those of other dialects become functions of one tool."""
    given = [tool for tool in tools if isinstance(tool, Mapping)] if isinstance(tools, list) else []
    made: list[JSON] = [dict(tool) for tool in given if is_gemini_tool(tool)]
    others = [found for tool in given if not is_gemini_tool(tool) and (found := _declaration(tool))]
    if not others:
        return made
    for index, tool in enumerate(made):
        if functions_of(tool) is not None:
            field = next(name for name in FUNCTIONS if isinstance(tool.get(name), list))
            made[index] = {**tool, field: [*tool[field], *others]}
            return made
    return [{FUNCTIONS[0]: others}, *made]


def declaration(*, name: JSON, description: JSON, schema: JSON) -> Item:
    """Return the declaration of a function; `schema` is the JSON Schema of its arguments."""
    about = {"description": description} if description else {}
    return {"name": name, **about, "parametersJsonSchema": schema}


def _declaration(tool: Mapping[str, Any]) -> Item | None:
    """Return the declaration of another dialect's tool, or of one without a list; None for server tools."""
    nested = tool.get("function", tool.get("custom"))
    definition = nested if isinstance(nested, Mapping) else tool
    if tool.get("type") == "custom" and "input_schema" not in tool:
        schema = TEXT_INPUT
    elif definition.keys() & {"parametersJsonSchema", "parameters_json_schema"}:
        return dict(definition)
    elif tool.get("type") in (None, "function", "custom"):
        schema = definition.get("input_schema") or definition.get("parameters")
    else:
        return None
    name = definition.get("name")
    if not isinstance(name, str):
        return None
    description = definition.get("description")
    return declaration(name=function_name(name), description=description, schema=schema or NO_ARGUMENTS)
