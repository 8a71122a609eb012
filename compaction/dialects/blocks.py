"""Helpers shared by dialects: content blocks and their errors, token estimates of media, short call ids."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from compaction.dialects.declarations import separated
from compaction.jsontext import dumps, loads_bytes
from compaction.messages import JSON, Message, Opaque, Role, Text, ToolCall, ToolResult
from compaction.provider_summary import COMPACTION
from compaction.sizes.tokens import IMAGE_TOKENS
from compaction.text_cache import once_per_text

_NOT_ID = re.compile(r"[^a-zA-Z0-9_-]")

#: Fields of an assistant message in Chat Completions that contain its reasoning. `thinking_blocks` are those
#: of Anthropic, which LiteLLM passes on in this field.
REASONING_FIELDS = frozenset({"reasoning_content", "thinking_blocks"})

#: Fields of messages in Chat Completions that other dialects do not have: there, their content would be lost.
CHAT_FIELDS = REASONING_FIELDS | {"tool_calls", "function_call", "tool_call_id", "refusal", "audio"}

#: Maximum length of the name of a called tool. Anthropic rejects longer names, even those that its model made
#: up.
_MAX_TOOL_NAME = 200

#: A page of a PDF is about 2,000 tokens and 100 KB of base64.
_DOCUMENT_CHARACTERS_PER_TOKEN = 50

#: Definitions of tools are JSON of long texts.
_DEFINITION_CHARACTERS_PER_TOKEN = 4

#: Fields of Gemini's parts with media, and whether these contain the data or its URI.
_GOOGLE_MEDIA = {"inlineData": "data", "inline_data": "data", "fileData": "uri", "file_data": "uri"}

#: The user's message before a prompt that would begin with the model's.
OPENING = "[The beginning of this conversation is not shown.]"

#: Number of lists of tool definitions about which a process remembers whether they are valid.
_REMEMBERED_TOOLS = 1 << 10

#: Maximum number of characters of an unsupported block that is included in its text note.
_MAX_NOTE = 2_000

#: Prefix of the output of a failed tool in dialects that have no error flag.
_ERROR_PREFIX = "Error: "


def digested_id(call_id: str) -> str:
    """Return a short id of letters, digits, `_` and `-`. The same `call_id` always has the same short id."""
    digest = hashlib.sha256(call_id.encode(errors="surrogatepass")).hexdigest()[:12]
    return f"{_NOT_ID.sub('_', call_id)[:24]}_{digest}"


def called_name(value: JSON) -> str:
    """Return the name of a called tool in a form that providers accept."""
    return as_text(value)[:_MAX_TOOL_NAME] or "unknown"


def as_text(value: JSON) -> str:
    """Return any JSON value as the text that a model would read."""
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value)


def media_tokens(block: Mapping[str, Any]) -> int:
    """Estimate the tokens of an image or document block; 0 for other kinds."""
    kind = block.get("type")
    if (media := google_media(block)) is not None:
        kind = "image" if media["mime_type"].startswith("image/") else "file"
    if kind in ("image", "image_url", "input_image"):
        return IMAGE_TOKENS
    if kind in ("document", "file", "input_audio", "input_file"):
        return max(IMAGE_TOKENS, len(dumps(block)) // _DOCUMENT_CHARACTERS_PER_TOKEN)
    return 0


def google_media(part: Mapping[str, Any]) -> dict[str, str] | None:
    """Return `mime_type` and `data` or `uri` of the media in a part of Gemini; None for other blocks."""
    for field, content in _GOOGLE_MEDIA.items():
        media = part.get(field)
        if not isinstance(media, Mapping):
            continue
        mime_type = as_text(media.get("mimeType") or media.get("mime_type"))
        value = media.get("data" if content == "data" else "fileUri") or media.get("file_uri")
        return {"mime_type": mime_type, content: as_text(value)}
    return None


def opaque(block: Mapping[str, Any]) -> Opaque:
    """Return a block that the core does not interpret."""
    kind = block.get("type")
    return Opaque(kind=kind if isinstance(kind, str) else "", media_tokens=media_tokens(block), source=block)


def setting(block: Mapping[str, Any]) -> Opaque:
    """Return a block that changes tools or settings, with an estimate of the tokens of its definitions."""
    return replace(opaque(block), media_tokens=len(dumps(block)) // _DEFINITION_CHARACTERS_PER_TOKEN)


def note_of(block: JSON, kind: str) -> str:
    """Return a text note in place of a block that the target dialect does not support."""
    summary = block.get("content") if kind == COMPACTION and isinstance(block, Mapping) else None
    if isinstance(summary, str):
        return summary
    text = dumps(block)
    return f"[{kind or 'unknown'} block]" + (f" {text}" if len(text) <= _MAX_NOTE else "")


def text_of(block: Mapping[str, Any]) -> str | None:
    """Return the text of a text block, or None for other blocks."""
    text = block.get("text")
    if block.get("type") in ("text", "input_text", "output_text", None) and isinstance(text, str):
        return text
    return None


def as_user(message: Message) -> Message:
    """Return a system message as a message of the user that says so."""
    parts = tuple(
        replace(part, text=f"[system] {part.text}", patched=True)
        if isinstance(part, Text) and part.text.strip()
        else part
        for part in message.parts
    )
    return replace(message, role=Role.USER, parts=parts, patched=True)


def tool_definitions(tools: JSON, convert: Callable[[Mapping[str, Any]], JSON]) -> list[JSON]:
    """Return the tool definitions of a request, without those that `convert` returns None for."""
    converted = (convert(tool) for tool in separated(tools))
    return [definition for definition in converted if definition is not None]


@once_per_text(_REMEMBERED_TOOLS)
def are_valid_definitions(tools: bytes, convert: Callable[[Mapping[str, Any]], JSON]) -> bool:
    """Return whether stored tool definitions can be sent unchanged."""
    given = loads_bytes(tools)
    return bool(given) and tool_definitions(given, convert) == given


def server_tool_text(part: ToolCall | ToolResult) -> str:
    """Return a call of a tool that another provider runs, or its result, as text."""
    if isinstance(part, ToolCall):
        return f"[{part.name} {part.arguments}]"
    return f"[result] {part.text}"


def error_text(result: ToolResult) -> str:
    """Return the text of a tool result for dialects without an error flag."""
    if result.is_error and not result.text.lower().startswith("error"):
        return _ERROR_PREFIX + result.text
    return result.text


def system_text(given: JSON) -> str:
    """Return the text of a system prompt of any dialect: a string, blocks, or a content of Gemini."""
    is_content = isinstance(given, Mapping) and isinstance(given.get("parts"), list)
    return joined_text(given["parts"] if is_content else given)[0]


def joined_text(content: JSON) -> tuple[str, int]:
    """Return the text of a content value (string, blocks or anything) and the tokens of its media."""
    if not isinstance(content, list):
        return as_text(content), 0
    texts: list[str] = []
    media = 0
    for block in content:
        if not isinstance(block, Mapping):
            texts.append(as_text(block))
            continue
        tokens = media_tokens(block)
        media += tokens
        text = text_of(block)
        if text is not None:
            texts.append(text)
        elif not tokens:
            texts.append(dumps(block))
    return "\n".join(texts), media


def parts_error(parts: Sequence[JSON], *, texts: Mapping[str, str], others: Collection[str]) -> str | None:
    """Return what is wrong with the first invalid part of a message's content, or None.

    `texts` maps the types of parts that consist of a text to its field; `others` are the other known types.
    """
    for index, part in enumerate(parts):
        if error := _part_error(part, texts, others):
            return f"`content[{index}]` {error}"
    return None


def _part_error(part: JSON, texts: Mapping[str, str], others: Collection[str]) -> str | None:
    if not isinstance(part, dict):
        return "must be an object."
    kind = part.get("type")
    if not isinstance(kind, str):
        return "must have a `type`."
    if field := texts.get(kind):
        return None if isinstance(part.get(field), str) else f"must have a string `{field}`."
    return None if kind in others else f"has the unknown type `{kind}`."
