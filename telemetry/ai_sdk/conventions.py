"""Messages of version 7, in the conventions of OpenTelemetry, converted to the parts of the SDK's messages.

They have neither the ids of items nor the signatures of reasoning. The text of an answer is one block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from telemetry.ai_sdk.parts import JSON, PROVIDER_RUN, words
from telemetry.json_text import objects

#: An attribute that only version 7 writes.
_MARK = "gen_ai.client.operation.duration"

_DENIAL = frozenset({"denied", "reason"})


def is_version_7(values: Mapping[str, Any]) -> bool:
    return _MARK in values


def prompt(values: Mapping[str, Any]) -> list[JSON]:
    """Return the messages of the request, with the system prompt."""
    sent = [message for message in objects(values.get("gen_ai.input.messages")) if "role" in message]
    system = objects(values.get("gen_ai.system_instructions")) if sent else []
    calls = {words(part, "id"): words(part, "name") for message in sent for part in _raw_parts(message)}
    return [
        *({"role": "system", "content": words(part, "content")} for part in system),
        *(_message(message, calls) for message in sent),
    ]


def answer(values: Mapping[str, Any]) -> list[JSON]:
    """Return the parts of the answer."""
    messages = objects(values.get("gen_ai.output.messages"))
    return _answer_parts(_raw_parts(messages[0]), {}) if messages else []


def _raw_parts(message: JSON) -> list[JSON]:
    return objects(message.get("parts"))


def _message(message: JSON, names: Mapping[str, str]) -> JSON:
    role, parts = message["role"], _raw_parts(message)
    if role == "system":
        return {"role": role, "content": "\n".join(words(part, "content") for part in parts)}
    content = _answer_parts(parts, names) if role == "assistant" else list(_parts(parts, names))
    return {"role": role, "content": content}


def _answer_parts(given: Sequence[JSON], names: Mapping[str, str]) -> list[JSON]:
    """Return the parts of an answer in the same order, whether it is in its own span or in a later prompt."""
    parts = list(_parts(given, names))
    calls = {part["toolCallId"]: part for part in parts if part["type"] == "tool-call"}
    run: list[JSON] = []  # calls of tools that the provider ran, each with its result
    for result in parts:
        if result["type"] == "tool-result":
            call = calls.pop(result["toolCallId"], None)
            run += [{**call, "providerExecuted": True}] if call is not None else []
            run.append({**result, "toolName": (call or result)["toolName"]})
    said = "".join(part["text"] for part in parts if part["type"] == "text")
    return [
        *(part for part in parts if part["type"] == "reasoning" and part["text"]),
        *run,
        *([{"type": "text", "text": said}] if said else []),
        *calls.values(),
    ]


def _parts(parts: Sequence[JSON], names: Mapping[str, str]) -> Iterator[JSON]:
    for part in parts:
        id = words(part, "id")
        match part.get("type"):
            case "text" | "reasoning" as kind:
                yield {"type": kind, "text": words(part, "content")}
            case "tool_call":
                call = {"type": "tool-call", "toolCallId": id, "toolName": words(part, "name")}
                is_run = id.startswith(PROVIDER_RUN)
                yield {**call, "input": part.get("arguments"), "providerExecuted": is_run}
            case "tool_call_response":
                result = {"type": "tool-result", "toolCallId": id, "toolName": names.get(id, "")}
                yield {**result, "output": _output(part)}
            case "blob":
                data = words(part, "content")
                is_url = data.startswith("data:")
                kind = data[5:].partition(";")[0] if is_url else words(part, "mime_type")
                yield {"type": "file", "mediaType": kind, "data": data.partition(",")[2] if is_url else data}
            case "uri":
                yield {"type": "file", "mediaType": words(part, "mime_type"), "data": words(part, "uri")}


def _output(part: JSON) -> JSON:
    """Return the output of a tool as in the SDK's messages."""
    response = part.get("response", "")
    if isinstance(response, str):
        return {"type": "text", "value": response}
    if isinstance(response, dict) and response.get("type") == "content":
        return response
    if isinstance(response, dict) and response.get("denied") is True and response.keys() <= _DENIAL:
        return {"type": "execution-denied", "reason": response.get("reason")}
    return {"type": "json", "value": response}
