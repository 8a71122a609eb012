"""Encoding of request bodies: JSON values and response objects of the providers' SDKs.

SDK objects are pydantic models. They are serialized as in the SDKs: by alias, without unset fields, and
without the parsed values that the SDKs add to responses, which the providers reject.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from contextapp_client.steps import Pause, Steps

#: Bytes of JSON, and number of converted messages, between two pauses: a few milliseconds.
_PAUSE_AFTER = 256 * 1024
_PAUSE_AFTER_MESSAGES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """The messages of a push, and what the last response object among them reports, as fields of a push."""

    messages: list[object]
    reported: Mapping[str, object] = field(default_factory=dict)


#: The fields of a response that a push reports, and those that only Anthropic's have, about its compaction.
_REPORTED = ("usage", "model")
_ANTHROPIC_REPORTED = (*_REPORTED, "context_management", "input_transformations")


def given(**fields: object) -> dict[str, object]:
    """Return the fields that are not None: optional arguments of a call that its request omits."""
    return {name: value for name, value in fields.items() if value is not None}


def encode(value: object) -> bytes:
    """Encode `value` as UTF-8 JSON. Lone surrogates are escaped, so that the server can reject them."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=plain)
    return text.encode(errors="backslashreplace")


def encode_body(body: Mapping[str, object]) -> Steps[bytes]:
    """Encode a JSON object. Long lists are encoded with pauses, so that they do not block an event loop."""
    parts: list[bytes] = []
    size = 0
    for name, value in body.items():
        parts += [b",", encode(str(name)), b":"]
        if not isinstance(value, list):
            parts.append(encode(value))
            continue
        parts.append(b"[")
        for index, item in enumerate(value):
            parts += [b"," if index else b"", encode(item)]
            size += len(parts[-1])
            if size > _PAUSE_AFTER:
                size = 0
                yield Pause(0)
        parts.append(b"]")
    return b"".join([b"{", *parts[1:], b"}"])  # one copy of all the text


def plain(value: object) -> Any:
    """Return the JSON value of an SDK object. Raises `TypeError` for unsupported objects."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        excluded = getattr(value, "__api_exclude__", None)
        plain_value = dump(mode="json", by_alias=True, exclude_unset=True, exclude=excluded, warnings=False)
        items = getattr(value, "output", None) if getattr(value, "object", None) == "response" else None
        return plain_value if items is None else plain_value | {"output": [plain(item) for item in items]}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return list(value)
    raise TypeError(f"{type(value).__name__} is neither a JSON value nor an object of a provider's SDK")


def read(messages: Iterable[object]) -> Steps[Pushed]:
    """Convert messages to the provider's format.

    Response objects are reduced to their message; the last one determines what is reported.
    """
    converted: list[object] = []
    reported: dict[str, object] = {}
    if isinstance(messages, str | bytes | Mapping) or hasattr(messages, "model_dump"):
        raise TypeError("`messages` must be a list of messages")
    for number, item in enumerate(messages, 1):
        if not isinstance(item, Mapping) and not hasattr(item, "model_dump"):
            raise TypeError(f"`messages[{number - 1}]` is of type {type(item).__name__}, not a message")
        value = item if isinstance(item, Mapping) else _without_parsed(plain(item))
        found = _messages_of(value)
        if found is not None:
            reported = _reported_by(value)
        converted += [value] if found is None else found
        if number % _PAUSE_AFTER_MESSAGES == 0:
            yield Pause(0)
    return Pushed(messages=converted, reported=reported)


#: The fields of a prompt by their names in contextapp's API and in OpenAI's Responses API.
_RESPONSES_FIELDS = {"system": "instructions", "messages": "input"}
#: Those in `config`, as Google's SDK names them.
_GEMINI_CONFIG = {"system": "system_instruction", "tools": "tools"}


def provider_fields(format: str, fields: Mapping[str, object]) -> dict[str, Any]:
    """Return the fields of a prompt by the names that the provider's SDK has for them."""
    if format == "gemini":
        config = {theirs: fields[ours] for ours, theirs in _GEMINI_CONFIG.items() if ours in fields}
        return {"contents": fields.get("messages", []), **({"config": config} if config else {})}
    names = _RESPONSES_FIELDS if format == "openai-responses" else {}
    return {names.get(name, name): value for name, value in fields.items()}


def prompt_fields(params: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a request to a provider by the names of contextapp's API."""
    if not isinstance(params, Mapping):
        raise TypeError('`params` must be the arguments of a model call, such as `{"messages": […]}`')
    config = params.get("config")
    given = {**params, **config} if isinstance(config, Mapping) else dict(params)
    given.pop("config", None)
    names = {"instructions": "system", "input": "messages", "contents": "messages"}
    names |= {"system_instruction": "system", "systemInstruction": "system"}
    return {names.get(name, name): value for name, value in given.items()}


def _reported_by(response: Mapping[str, Any]) -> dict[str, object]:
    """Return what a response reports, as fields of a push."""
    if "candidates" in response:
        found = {"usage": response.get("usageMetadata"), "model": response.get("modelVersion")}
        return given(**found)
    names = _ANTHROPIC_REPORTED if response.get("type") == "message" else _REPORTED
    return {name: response[name] for name in names if response.get(name) is not None}


def _messages_of(value: Any) -> list[object] | None:
    """Return the messages in a response of Anthropic, OpenAI or Gemini, or None for other values.

    A response of OpenAI's Responses API consists of several items.
    """
    if value.get("type") == "message" and "model" in value:
        return [{"role": value["role"], "content": value["content"]}]
    if "choices" in value:
        message = value["choices"][0]["message"]
        return [_without_parsed(message if isinstance(message, Mapping) else plain(message))]
    if value.get("object") == "response":
        return list(value["output"])
    if "candidates" in value:
        candidates = value["candidates"] or [{}]
        return [content] if (content := candidates[0].get("content")) and content.get("parts") else []
    return None


def _without_parsed(message: Any) -> Any:
    """Return a message without the values that `parse` and `stream` of OpenAI's SDK add."""
    kept = {name: value for name, value in message.items() if name != "parsed"}
    if calls := kept.get("tool_calls"):
        kept["tool_calls"] = [_call_without_parsed(call) for call in calls]
    return kept


def _call_without_parsed(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or "parsed_arguments" not in function:
        return call
    kept = {name: value for name, value in function.items() if name != "parsed_arguments"}
    return {**call, "function": kept}
