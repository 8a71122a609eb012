"""OpenAI's Chat Completions format: parse what was pushed, make the messages of a prompt.

The parts of a message are, in this order: its reasoning (gateways' `reasoning_content`), its content, a
refusal, its tool calls. A message with role `tool` is one `ToolResult`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compaction.formats.blocks import (
    as_text,
    joined_text,
    note_of,
    opaque,
    short_id,
    stray,
    text_of,
    to_image_url,
)
from compaction.jsontext import dumps, is_object, loads_object
from compaction.messages import JSON, Message, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult

NAME = "openai"

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
}

#: Fields that a message may have (C5). The last two are no part of OpenAI's own schema, but gateways
#: and open models that speak the format define them, and some refuse a message without them.
KNOWN_FIELDS = frozenset(
    {"role", "content", "name", "tool_calls", "tool_call_id", "refusal", "audio", "function_call"}
    | {"annotations", "reasoning_content", "cache_control"}
)

_PART_KINDS = frozenset({"image_url", "input_audio", "file"})

#: Stands before the text of a failed tool run, as the format has no flag for it.
_ERROR_PREFIX = "Error: "


def read(item: JSON, *, position: int, turn: int, tokens: int = 0, pinned: bool = False) -> Message:
    """One message. Tolerates anything, raises nothing."""
    if not isinstance(item, Mapping):
        return stray(item, format=NAME, position=position, turn=turn, tokens=tokens, pinned=pinned)
    name = item.get("role")
    role = _ROLES.get(name) if isinstance(name, str) else None
    if name == "function":
        item, role = {**item, "tool_call_id": f"function_{as_text(item.get('name'))}"}, Role.TOOL
    parts = _answer(item) if role is Role.TOOL else _parts(item, role)
    return Message(
        position=position,
        turn=turn,
        tokens=tokens,
        pinned=pinned,
        role=role or Role.USER,
        parts=parts,
        format=NAME,
        source=item,
        patched=name not in _ROLES or not _is_sound(item, role or Role.USER, parts),
    )


def _is_sound(item: Mapping[str, Any], role: Role, parts: tuple[Part, ...]) -> bool:
    """Whether the message can be sent as it is: C3 to C5, and nothing in it that had to be guessed."""
    if any(getattr(part, "patched", False) for part in parts) or not KNOWN_FIELDS.issuperset(item):
        return False
    if role is Role.ASSISTANT and item.get("tool_calls"):
        return isinstance(item.get("content"), str | list | None) and item.get("function_call") is None
    return isinstance(item.get("content"), str | list) or bool(item.get("audio"))


def _answer(item: Mapping[str, Any]) -> tuple[Part, ...]:
    text, media = joined_text(item.get("content"))
    call_id = item.get("tool_call_id")
    sound = isinstance(call_id, str) and isinstance(item.get("content"), str | list)
    return (
        ToolResult(call_id=as_text(call_id), text=text, media_tokens=media, source=item, patched=not sound),
    )


def _parts(item: Mapping[str, Any], role: Role | None) -> tuple[Part, ...]:
    content = item.get("content")
    parts: list[Part] = []
    if role is Role.ASSISTANT and isinstance(reasoning := item.get("reasoning_content"), str):
        parts.append(Thinking(text=reasoning))
    if isinstance(content, list):
        parts += (_part(block) for block in content)
    elif content is not None:
        parts.append(Text(text=as_text(content)))
    if role is Role.ASSISTANT:
        if isinstance(refusal := item.get("refusal"), str):
            parts.append(Text(text=refusal, source={"type": "refusal", "refusal": refusal}))
        calls = item.get("tool_calls")
        parts += (_call(call) for call in (calls if isinstance(calls, list) else []))
        if isinstance(legacy := item.get("function_call"), Mapping):
            call_id = f"function_{as_text(legacy.get('name'))}"
            parts.append(_call({"id": call_id, "type": "function", "function": legacy}))
    return tuple(parts)


def _part(block: JSON) -> Part:
    if not isinstance(block, Mapping):
        return Text(text=as_text(block), patched=True)
    words, kind = text_of(block), as_text(block.get("type"))
    if words is not None:
        return Text(text=words, source=block, patched=kind != "text")
    if kind == "refusal":
        return Text(text=as_text(block.get("refusal")), source=block)
    if kind in _PART_KINDS:
        return opaque(block)
    return Text(text=note_of(block, kind), patched=True)


def _call(call: JSON) -> ToolCall:
    held: Mapping[str, Any] = call if isinstance(call, Mapping) else {}
    custom = held.get("type") == "custom"
    function = held.get("custom" if custom else "function")
    function = function if isinstance(function, Mapping) else {}
    arguments = {"input": function.get("input")} if custom else function.get("arguments")
    call_id, name = held.get("id"), as_text(function.get("name"))
    told = arguments if isinstance(arguments, str) else dumps(arguments or {})
    sound = bool(name) and isinstance(call_id, str) and (custom or told is arguments)
    return ToolCall(
        call_id=as_text(call_id),
        name=name or "unknown",
        arguments=told,
        source=call,
        patched=not (sound and is_object(told)),
    )


def message_json(message: Message) -> list[dict[str, JSON]]:
    """One message as OpenAI takes it: several where it answers several calls, none where nothing is said."""
    native = message.format == NAME
    if native and not message.patched and message.source is not None:
        return [dict(message.source)]
    kept = {k: v for k, v in (message.source or {}).items() if native and k in KNOWN_FIELDS}
    if message.role is Role.ASSISTANT:
        return _assistant(message, kept, native)
    answers = [_answer_json(part, kept, native) for part in message.parts if isinstance(part, ToolResult)]
    media = [
        block
        for part in message.parts
        if isinstance(part, ToolResult) and not native
        for block in _media(part)
    ]
    content = [block for part in message.parts if (block := _content(part, native)) is not None]
    if not media and not content:
        return answers
    role = "system" if message.role is Role.SYSTEM else "user"
    if native and kept.get("role") == "developer":
        role = "developer"
    kept = {k: v for k, v in kept.items() if k != "tool_call_id" and not answers}
    return [*answers, {**kept, "role": role, "content": _plain(media + content)}]


def _assistant(message: Message, kept: dict[str, JSON], native: bool) -> list[dict[str, JSON]]:
    calls = [_call_json(part, native) for part in message.tool_calls if not part.server]
    content = [block for part in message.parts if (block := _content(part, native)) is not None]
    if not calls and not content:
        return []
    made: dict[str, JSON] = {**kept, "role": "assistant", "content": _plain(content) if content else None}
    for field in ("tool_calls", "function_call", "refusal"):
        made.pop(field, None)
    if not any(isinstance(part, Thinking) for part in message.parts):
        made.pop("reasoning_content", None)
    if calls:
        made["tool_calls"] = calls
    return [made]


def _plain(blocks: list[dict[str, JSON]]) -> JSON:
    """A string where there are only words in plain blocks, the blocks where there is more."""
    if all(block.keys() == {"type", "text"} for block in blocks):
        return "\n\n".join(block["text"] for block in blocks)
    return blocks


def _content(part: Part, native: bool) -> dict[str, JSON] | None:
    source = part.source if native and isinstance(part.source, Mapping) else None
    match part:
        case Text(text=text, patched=False) if source is not None:
            return dict(source)
        case Text(text=text):
            return {**(source or {}), "type": "text", "text": text} if text else None
        case Opaque(kind=kind):
            held = part.source if isinstance(part.source, Mapping) else {}
            made = dict(held) if native else to_image_url(held)
            return made or {"type": "text", "text": note_of(part.source, kind)}
        case ToolCall(server=True, name=name, arguments=arguments):
            return {"type": "text", "text": f"[{name} {arguments}]"}
        case ToolResult(server=True, text=text):
            return {"type": "text", "text": f"[result] {text}"}
    return None


def _call_json(part: ToolCall, native: bool) -> dict[str, JSON]:
    source = part.source if native and isinstance(part.source, Mapping) else {}
    if source and not part.patched:
        return dict(source)
    told = part.arguments if is_object(part.arguments) else dumps(loads_object(part.arguments))
    function = {"name": part.name, "arguments": told}
    return {"id": _id(part.call_id, native), "type": "function", "function": function}


def _answer_json(part: ToolResult, kept: dict[str, JSON], native: bool) -> dict[str, JSON]:
    if native and not part.patched:
        return {**kept, "role": "tool", "tool_call_id": part.call_id}
    text = part.text
    if part.is_error and not text.lower().startswith("error"):
        text = _ERROR_PREFIX + text
    extra = {k: v for k, v in kept.items() if native and k not in ("content", "name")}
    return {**extra, "role": "tool", "tool_call_id": _id(part.call_id, native), "content": text}


def _media(part: ToolResult) -> list[dict[str, JSON]]:
    """Images that a tool answered with. Tool messages hold text only, so the user shows them behind."""
    content = part.source.get("content") if isinstance(part.source, Mapping) else None
    if not part.media_tokens or not isinstance(content, list):
        return []
    made = [block for item in content if isinstance(item, Mapping) and (block := to_image_url(item))]
    return [{"type": "text", "text": f"[media in the result of {part.call_id}]"}, *made] if made else []


def _id(call_id: str, native: bool) -> str:
    return call_id if native else short_id(call_id)


def conversation(messages: Sequence[Message]) -> list[dict[str, JSON]]:
    """The `messages` of a request. Media from tool results stands behind the last answer (C1)."""
    out: list[dict[str, JSON]] = []
    held: list[dict[str, JSON]] = []
    for message in messages:
        made = message_json(message)
        answers = [item for item in made if item.get("role") == "tool"]
        rest = [item for item in made if item.get("role") != "tool"]
        if answers:
            out += answers
            held += rest
            continue
        out += held + rest
        held = []
    return out + held


def system_message(given: JSON) -> list[dict[str, JSON]]:
    """The `system` field of another format as the first message of this one."""
    words = joined_text(given)[0]
    return [{"role": "system", "content": words}] if words.strip() else []


def tools_field(tools: JSON) -> list[JSON]:
    """Tool definitions as OpenAI takes them, its own unchanged. Anthropic's server tools have no like."""
    if not isinstance(tools, list):
        return []
    return [made for tool in tools if isinstance(tool, Mapping) and (made := _tool(tool)) is not None]


def _tool(tool: Mapping[str, Any]) -> dict[str, JSON] | None:
    if "function" in tool or (tool.get("type") == "custom" and "custom" in tool):
        return dict(tool)
    if "input_schema" not in tool:
        return None
    function: dict[str, JSON] = {"name": tool.get("name")}
    if tool.get("description"):
        function["description"] = tool["description"]
    return {"type": "function", "function": {**function, "parameters": tool["input_schema"]}}
