"""Convert messages of the conventions, which have a role and parts, to a provider's dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from compaction.dialects.media import anthropic_media
from telemetry.json_text import parsed
from telemetry.media import chat_part, media_note
from telemetry.values import Conversation

JSON = dict[str, Any]

#: A message with `role` and `parts`.
Parts = Mapping[str, Any]

_RESULTS = ("response", "result", "content")

#: Parts that a later request cannot repeat: the reasoning has no signature, and the tools that the provider
#: runs have no results. Pydantic AI calls the reasoning `thinking`, and marks such tools as `builtin`.
_LEFT_OUT = frozenset({"reasoning", "thinking", "server_tool_call", "server_tool_call_response"})


def dialect_messages(
    *, sent: Sequence[Parts], answer: Parts | None, system: str, tools: Sequence[JSON], is_anthropic: bool
) -> Conversation:
    """Return the content of a call for Anthropic's Messages API or OpenAI's Chat Completions."""
    if is_anthropic:
        own = [message for message in sent if message["role"] != "system"]
        system = system or "\n\n".join(_text(message) for message in sent if message["role"] == "system")
        replies = _anthropic([answer]) if answer is not None else []
        return Conversation(
            messages=_anthropic(own),
            answers=replies[:1],
            system=system or None,
            tools=list(tools) or None,
        )
    messages = [each for message in sent for each in _chat(message)]
    if system:
        messages.insert(0, {"role": "system", "content": system})
    replies = _chat(answer) if answer is not None else []
    return Conversation(messages=messages, answers=replies[:1], tools=list(tools) or None)


def _chat(message: Parts) -> list[JSON]:
    """Return a message for Chat Completions. Each result of a tool is a separate message."""
    role, parts = message["role"], _kept(message)
    results = [part for part in parts if part.get("type") == "tool_call_response"]
    found: list[JSON] = [
        {"role": "tool", "tool_call_id": str(part.get("id") or ""), "content": _result(part, _chat_part)}
        for part in results
    ]
    others = [part for part in parts if part.get("type") != "tool_call_response"]
    calls = [_chat_call(part) for part in others if part.get("type") == "tool_call"]
    contents = [part for part in others if part.get("type") != "tool_call"]
    if role == "assistant" and (others or not message["parts"]):
        body: JSON = {"role": role, "content": "\n\n".join(map(_part_text, contents)) or None}
        return [*found, body | ({"tool_calls": calls} if calls else {})]
    if contents:
        if all(chat_part(part) is None for part in contents):
            found.append({"role": role, "content": "\n".join(map(_part_text, contents))})
        else:
            found.append({"role": role, "content": [_chat_part(part) for part in contents]})
    return found


def _chat_call(part: JSON) -> JSON:
    function = {"name": str(part.get("name") or ""), "arguments": _json_text(part.get("arguments"))}
    return {"id": str(part.get("id") or ""), "type": "function", "function": function}


def _chat_part(part: JSON) -> JSON:
    return chat_part(part) or {"type": "text", "text": _part_text(part)}


def _anthropic(messages: Sequence[Parts]) -> list[JSON]:
    """Return messages for the Messages API. Consecutive results of tools share a user message."""
    found: list[JSON] = []
    for message in messages:
        role = "assistant" if message["role"] == "assistant" else "user"
        blocks = [_block(part) for part in _kept(message)]
        if not blocks:
            continue
        previous = found[-1]["content"] if found else []
        if role == "user" == (found[-1]["role"] if found else "") and _is_results(blocks + previous):
            previous.extend(blocks)
        else:
            found.append({"role": role, "content": blocks})
    return [_plain(message) for message in found]


def _is_results(blocks: Sequence[JSON]) -> bool:
    return all(block["type"] == "tool_result" for block in blocks)


def _plain(message: JSON) -> JSON:
    """Return a user's message with one text as a string, the form in which most clients send it."""
    content = message["content"]
    if message["role"] == "user" and len(content) == 1 and content[0]["type"] == "text":
        return {**message, "content": content[0]["text"]}
    return message


def _block(part: JSON) -> JSON:
    match part.get("type"):
        case "tool_call":
            given = parsed(part.get("arguments"))
            given = given if isinstance(given, dict) else {"input": given} if given is not None else {}
            name = str(part.get("name") or "")
            return {"type": "tool_use", "id": str(part.get("id") or ""), "name": name, "input": given}
        case "tool_call_response":
            return {
                "type": "tool_result",
                "tool_use_id": str(part.get("id") or ""),
                "content": _result(part, _content_block),
            }
    return _content_block(part)


def _content_block(part: JSON) -> JSON:
    if part.get("type") in ("image", "document") and isinstance(part.get("source"), dict):
        return part
    return anthropic_media(chat_part(part) or {}) or {"type": "text", "text": _part_text(part)}


def _kept(message: Parts) -> list[JSON]:
    parts = message["parts"]
    return [part for part in parts if part.get("type") not in _LEFT_OUT and not part.get("builtin")]


def _part_text(part: JSON) -> str:
    """Return the text of a part, or its JSON if it is of a kind without text, such as the id of a file."""
    if (note := media_note(part)) is not None:
        return note
    if part.get("type") == "text" or "content" in part:
        content = part.get("content", part.get("text"))
        return content if isinstance(content, str) else "" if content is None else _json_text(content)
    return _json_text(part)


def _text(message: Parts) -> str:
    return "\n".join(_part_text(part) for part in message["parts"])


def _result(part: JSON, block_of: Callable[[JSON], JSON]) -> Any:
    """Return the result of a tool as text, or as blocks if it contains media."""
    value = next((part[name] for name in _RESULTS if part.get(name) is not None), "")
    items = value if isinstance(value, list) else [value]
    blocks = [item for item in items if isinstance(item, dict)]
    if any(chat_part(block) is not None for block in blocks):
        return [block_of(item if isinstance(item, dict) else {"content": item}) for item in items]
    texts = [block["text"] for block in blocks if "text" in block]
    if texts and isinstance(value, list) and len(texts) == len(value):
        return "\n".join(map(_json_text, texts))
    return _json_text(value)


def _json_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return orjson.dumps(value if value is not None else {}, default=str).decode()
