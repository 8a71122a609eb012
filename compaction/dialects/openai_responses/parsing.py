"""Parse items of OpenAI's Responses API. Each item is one message.

The content parts of a message become one part each, with the same index. Any other item has one part:
reasoning, a tool call, a tool result, or an item that the core does not interpret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from compaction.dialects.base import Reading
from compaction.dialects.blocks import (
    as_text,
    called_name,
    joined_text,
    note_of,
    opaque,
    setting,
    text_of,
)
from compaction.dialects.openai_responses.kinds import (
    CALLS,
    CLIENT,
    COMPACTION,
    COMPUTER_OUTPUT,
    CUSTOM_CALL,
    FUNCTION_CALL,
    ID_PREFIXES,
    MAX_ID,
    MEDIA,
    MESSAGE,
    NAME,
    OUTPUT_KINDS,
    REASONING,
    SETTINGS,
    SHELL_OUTPUT,
    call_id_of,
    is_output,
    kind_of,
    text_kind,
)
from compaction.jsontext import dumps, is_object
from compaction.messages import JSON, Message, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult
from compaction.sizes.tokens import IMAGE_TOKENS

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
}

#: Characters of encrypted content per token: it is base64 of about four characters of text per token.
_ENCRYPTED_CHARACTERS_PER_TOKEN = 6


def read(item: Mapping[str, Any]) -> Reading:
    role, parts, is_sound = _read(item)
    return role, parts, is_sound and has_valid_id(item) and not any(key[:1] == "_" for key in item), item


def has_valid_id(item: Mapping[str, Any]) -> bool:
    """Return whether the provider accepts the id of an item, if it has one."""
    prefix = ID_PREFIXES.get(kind_of(item))
    return "id" not in item or prefix is None or is_id(item["id"], prefix)


def is_id(value: JSON, prefix: str = "") -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_ID and value.startswith(prefix)


def _read(item: Mapping[str, Any]) -> tuple[Role, tuple[Part, ...], bool]:
    """Return the role and the parts, and whether the item can be sent unchanged."""
    kind = kind_of(item)
    if kind == MESSAGE:
        return _message(item)
    if kind == REASONING:
        is_sound = isinstance(item.get("summary"), list) and not item.get("content")
        return Role.ASSISTANT, (_reasoning(item),), is_sound
    if kind in CALLS:
        call = _call(item, kind)
        return Role.ASSISTANT, (call,), not call.patched
    if kind in OUTPUT_KINDS:
        result = _result(item, kind)
        return Role.TOOL, (result,), not result.patched
    role = Role.SYSTEM if kind in SETTINGS else Role.USER if kind in CLIENT else Role.ASSISTANT
    return role, (_opaque(item, kind),), True


def _message(item: Mapping[str, Any]) -> tuple[Role, tuple[Part, ...], bool]:
    name, content = item.get("role"), item.get("content")
    role = _ROLES.get(name) if isinstance(name, str) else None
    if isinstance(content, str):
        return role or Role.USER, (Text(text=content),), role is not None
    if not isinstance(content, list):
        parts: tuple[Part, ...] = (Text(text=as_text(content)),) if content is not None else ()
        return role or Role.USER, parts, False
    parts = tuple(_part(part, text_kind(name)) for part in content)
    is_sound = bool(parts) and not any(isinstance(part, Text) and part.patched for part in parts)
    return role or Role.USER, parts, is_sound and role is not None


def _part(part: JSON, expected: str) -> Part:
    if not isinstance(part, Mapping):
        return Text(text=as_text(part), patched=True)
    kind, text = as_text(part.get("type")), text_of(part)
    if text is not None:
        return Text(text=text, source=part, patched=kind != expected)
    if kind == "refusal":
        return Text(text=as_text(part.get("refusal")), source=part)
    if kind in MEDIA:
        return opaque(part)
    return Text(text=note_of(part, kind), patched=True)


def _reasoning(item: Mapping[str, Any]) -> Thinking:
    texts = [joined_text(item[field])[0] for field in ("summary", "content") if item.get(field)]
    return Thinking(
        text="\n".join(texts), signature=as_text(item.get("encrypted_content")) or None, source=item
    )


def _call(item: Mapping[str, Any], kind: str) -> ToolCall:
    call_id, name = call_id_of(item), called_name(item.get("name"))
    is_named = name == item.get("name")
    if kind == FUNCTION_CALL:
        arguments = as_text(item.get("arguments"))
        is_sound = is_named and isinstance(item.get("arguments"), str) and is_object(arguments)
    elif kind == CUSTOM_CALL:
        arguments = dumps({"input": item.get("input")})
        is_sound = is_named and isinstance(item.get("input"), str)
    else:
        arguments = dumps(item.get("action") or item.get("operation") or {})
        name, is_sound = kind.removesuffix("_call"), True
    return ToolCall(
        call_id=as_text(call_id),
        name=name,
        arguments=arguments,
        source=item,
        fixed=kind not in (FUNCTION_CALL, CUSTOM_CALL),
        patched=not (is_sound and is_id(call_id)),
    )


def _result(item: Mapping[str, Any], kind: str) -> ToolResult:
    output: Any = item.get("output")
    call_id = call_id_of(item)
    is_valid = is_output(kind, output)
    is_screenshot = is_valid and kind == COMPUTER_OUTPUT
    text, media = ("", IMAGE_TOKENS) if is_screenshot else joined_text(output)
    if is_valid and kind == SHELL_OUTPUT:
        text = "\n".join(as_text(run.get(name)) for run in output for name in ("stdout", "stderr"))
    is_sound = is_valid and is_id(call_id)
    return ToolResult(
        call_id=as_text(call_id), text=text, media_tokens=media, source=item, patched=not is_sound
    )


def _opaque(item: Mapping[str, Any], kind: str) -> Opaque:
    if kind in SETTINGS:
        return setting(item)
    if kind != COMPACTION:
        return opaque(item)
    length = len(as_text(item.get("encrypted_content")))
    return Opaque(kind=kind, media_tokens=max(1, length // _ENCRYPTED_CHARACTERS_PER_TOKEN), source=item)


def united(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with the items of each response in one message, for other dialects."""
    out: list[Message] = []
    for message in messages:
        last = out[-1] if out else None
        if last and last.role is message.role is Role.ASSISTANT and last.format == message.format == NAME:
            out[-1] = replace(last, parts=(*last.parts, *message.parts), patched=True)
        else:
            out.append(message)
    return out
