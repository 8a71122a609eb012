"""Parse contents of Gemini's API. Each part becomes one part with the same index.

Function calls and responses often have no id, and clients add ids only to their own copies. A response
therefore belongs to the call of the same function with the same number: `call_id` is the function's name and
the number of the call in its content, such as `read_file-1`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from compaction.dialects.base import Reading
from compaction.dialects.blocks import as_text, google_media, joined_text, media_tokens, note_of
from compaction.dialects.gemini.kinds import (
    CALL,
    FUNCTION,
    INLINE,
    MODEL,
    RESPONSE,
    SERVER_CALLS,
    SERVER_RESULTS,
    SIGNATURE,
    TEXT,
    USER,
    function_name,
    is_thought,
    kind_of,
    value_of,
)
from compaction.jsontext import dumps
from compaction.messages import JSON, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult

_ROLES = {USER: Role.USER, MODEL: Role.ASSISTANT, FUNCTION: Role.TOOL}

#: Fields of a function's response that contain its whole text if there is no other field.
_TEXT_FIELDS = ("output", "result", "error", "content")
ERROR = "error"

#: The outcome of code that ran without an error.
_OK = "OUTCOME_OK"


def read(item: Mapping[str, Any]) -> Reading:
    name, given = item.get("role"), item.get("parts")
    role = _ROLES.get(name, Role.USER) if isinstance(name, str) else Role.USER
    counts: Counter[tuple[str, str]] = Counter()
    parts = tuple(_part(part, role, counts) for part in given) if isinstance(given, list) else ()
    is_sound = name in (USER, MODEL) and item.keys() == {"role", "parts"} and bool(parts)
    return role, parts, is_sound and not any(map(is_unsound, parts)), item


def is_unsound(part: Part) -> bool:
    """Return whether a part cannot be sent unchanged."""
    if isinstance(part, Text):
        return part.patched or not part.text
    return isinstance(part, ToolCall | ToolResult) and part.patched


def _part(part: JSON, role: Role, counts: Counter[tuple[str, str]]) -> Part:
    if not isinstance(part, Mapping):
        return Text(text=as_text(part), patched=True)
    kind, signature = kind_of(part), as_text(value_of(part, SIGNATURE)) or None
    is_model = role is Role.ASSISTANT
    if kind == TEXT:
        text = as_text(part[TEXT])
        if is_model and ((is_thought(part) and text) or (signature and not text)):
            return Thinking(text=text, signature=signature, source=part)
        return Text(text=text, source=part, patched=not isinstance(part[TEXT], str))
    if kind == CALL and is_model:
        return _call(part, counts)
    if kind == RESPONSE and not is_model:
        return _response(part, counts)
    if kind in SERVER_CALLS and is_model:
        return _server_call(part, kind, counts)
    if kind in SERVER_RESULTS and is_model:
        return _server_result(part, kind, counts)
    if kind in (CALL, RESPONSE):
        return Text(text=note_of(part, kind), patched=True)
    if kind is None and signature and is_model:
        return Thinking(text="", signature=signature, source=part)
    return Opaque(kind=_label(part, kind), media_tokens=media_tokens(part), source=part)


def _label(part: Mapping[str, Any], kind: str | None) -> str:
    """Return the kind of a block: the type of its media, or the first of its fields."""
    media = google_media(part) if kind == INLINE else None
    if media is not None and media["mime_type"].startswith("image/"):
        return "image"
    return kind or next(iter(part), "")


def _numbered(name: str, kind: str, counts: Counter[tuple[str, str]]) -> str:
    counts[kind, name] += 1
    return f"{name}-{counts[kind, name]}"


def _call(part: Mapping[str, Any], counts: Counter[tuple[str, str]]) -> ToolCall:
    call = value_of(part, CALL)
    call = call if isinstance(call, Mapping) else {}
    name, arguments = function_name(call.get("name")), call.get("args")
    is_sound = name == call.get("name") and (arguments is None or isinstance(arguments, Mapping))
    return ToolCall(
        call_id=_numbered(name, CALL, counts),
        name=name,
        arguments=dumps(arguments) if arguments is not None else "{}",
        source=part,
        patched=not is_sound,
    )


def _response(part: Mapping[str, Any], counts: Counter[tuple[str, str]]) -> ToolResult:
    given = value_of(part, RESPONSE)
    given = given if isinstance(given, Mapping) else {}
    name, response = function_name(given.get("name")), given.get("response")
    field = text_field(response)
    media = given.get("parts")
    return ToolResult(
        call_id=_numbered(name, CALL, counts),
        text=response_text(response),
        is_error=True if field == ERROR else None,
        media_tokens=joined_text(media)[1] if isinstance(media, list) else 0,
        source=part,
        patched=name != given.get("name") or not isinstance(response, Mapping),
    )


def text_field(response: JSON) -> str | None:
    """Return the field with the whole text of a function's response, or None if it is structured."""
    if not isinstance(response, Mapping) or len(response) != 1:
        return None
    return next((field for field in _TEXT_FIELDS if field in response), None)


def response_text(response: JSON) -> str:
    """Return the text of a function's response: that of its only field, or else its JSON."""
    field = text_field(response)
    return as_text(response if field is None else response[field])


def _server_call(part: Mapping[str, Any], kind: str, counts: Counter[tuple[str, str]]) -> ToolCall:
    call = value_of(part, kind)
    call = call if isinstance(call, Mapping) else {}
    is_code = kind == SERVER_CALLS[0]
    name = "code_execution" if is_code else as_text(call.get("toolType") or call.get("tool_type"))
    arguments = {key: value for key, value in call.items() if key != "id"} if is_code else call.get("args")
    return ToolCall(
        call_id=_numbered("server", "server-call", counts),
        name=name or "tool",
        arguments=dumps(arguments or {}),
        server=True,
        source=part,
    )


def _server_result(part: Mapping[str, Any], kind: str, counts: Counter[tuple[str, str]]) -> ToolResult:
    result = value_of(part, kind)
    result = result if isinstance(result, Mapping) else {}
    outcome = result.get("outcome")
    return ToolResult(
        call_id=_numbered("server", "server-result", counts),
        text=as_text(result.get("output", result.get("response"))),
        is_error=outcome != _OK if isinstance(outcome, str) else None,
        server=True,
        source=part,
    )
