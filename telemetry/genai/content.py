"""The content of a model call: where each convention keeps the messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from telemetry.ai_sdk import content as ai_sdk
from telemetry.attributes import text
from telemetry.genai import indexed
from telemetry.genai.messages import Parts, dialect_messages
from telemetry.json_text import objects, parsed
from telemetry.records import Span
from telemetry.values import Conversation

JSON = dict[str, Any]

#: The event that carries the content, in some versions of the conventions.
_DETAILS = "gen_ai.client.inference.operation.details"


def conversation(span: Span) -> Conversation | None:
    """Return the content of a call, or None if the instrumentation does not capture it."""
    raw = _raw(span.attributes) or ai_sdk.conversation(span.attributes)
    if raw is not None:
        return raw
    values = dict(span.attributes)
    for event in span.events:
        if event.name == _DETAILS:
            values |= event.attributes
    sent: Sequence[Parts] = messages(values.get("gen_ai.input.messages")) or indexed.sent(values)
    answers: Sequence[Parts] = messages(values.get("gen_ai.output.messages")) or indexed.answered(values)
    if not sent:
        return None
    if _is_of_responses(values):
        sent, answers = _joined(sent), _joined(answers)
    is_anthropic = "anthropic" in provider(values)
    system = _system(values.get("gen_ai.system_instructions"))
    return dialect_messages(
        sent=sent,
        answer=answers[0] if answers else None,
        system=system,
        tools=tools(values),
        is_anthropic=is_anthropic,
    )


def provider(values: Mapping[str, Any]) -> str:
    """Return the name of the provider in lower case."""
    return text(values, "gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system").lower()


def response_id(values: Mapping[str, Any]) -> str:
    """Return the provider's id of the response, or "" if it is unknown."""
    return text(values, "gen_ai.response.id") or text(_object(values.get("output.value")), "id")


def messages(value: Any) -> list[Parts]:
    """Return messages with `role` and `parts`, which may be JSON text. Malformed ones are skipped."""
    found = parsed(value)
    if not isinstance(found, list):
        return []
    return [
        {"role": text(each, "role") or "user", "parts": objects(each.get("parts"))}
        for each in map(parsed, found)
        if isinstance(each, dict)
    ]


def _is_of_responses(values: Mapping[str, Any]) -> bool:
    """Return whether the call is of OpenAI's Responses API."""
    return text(values, "openai.api.type") == "responses" or response_id(values).startswith("resp_")


def _joined(given: Sequence[Parts]) -> Sequence[Parts]:
    """Join consecutive messages of the model. Spans of the Responses API have one for each item of an answer.

    How many items share a message differs between the answer in a span and the same answer in a later prompt.
    """
    found: list[Parts] = []
    for message in given:
        if found and found[-1]["role"] == message["role"] == "assistant":
            found[-1] = {**found[-1], "parts": [*found[-1]["parts"], *message["parts"]]}
        else:
            found.append(message)
    return found


def tools(values: Mapping[str, Any]) -> list[JSON]:
    """Return the definitions of the tools, as the provider gets them."""
    found = parsed(values.get("gen_ai.tool.definitions"))
    return objects(found) or indexed.tools(values)


def _system(value: Any) -> str:
    """Return the text of the system instructions: a list of parts, or text."""
    found = parsed(value)
    if isinstance(found, str):
        return found
    return "\n\n".join(text(part, "content", "text") for part in objects(found))


def _raw(values: Mapping[str, Any]) -> Conversation | None:
    """Return the request and response as the provider's JSON, which OpenInference records."""
    request, response = _object(values.get("input.value")), _object(values.get("output.value"))
    if "input" in request:
        return _raw_items(request, response)
    sent = objects(request.get("messages"))
    if not sent or not all("role" in message for message in sent):
        return None
    return Conversation(
        messages=[_without_nulls(message) for message in sent],
        answers=_raw_answers(response),
        system=request.get("system") or None,
        tools=objects(request.get("tools")) or None,
    )


def _raw_items(request: Mapping[str, Any], response: Mapping[str, Any]) -> Conversation | None:
    """Return the items of a call of OpenAI's Responses API."""
    given = request["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else objects(given)
    if not items:
        return None
    return Conversation(
        messages=[_without_nulls(item) for item in items],
        answers=[_without_nulls(item) for item in objects(response.get("output"))],
        previous_response=text(request, "previous_response_id"),
        system=request.get("instructions") or None,
        tools=objects(request.get("tools")) or None,
    )


def _raw_answers(response: Mapping[str, Any]) -> list[JSON]:
    choices = objects(response.get("choices"))
    if choices and isinstance(choices[0].get("message"), dict):
        kept = ("role", "content", "tool_calls", "refusal")
        message = choices[0]["message"]
        found = {name: _without_nulls(message[name]) for name in kept if message.get(name) is not None}
        return [{"content": None, **found}]
    if response.get("role") == "assistant" and objects(response.get("content")):
        return [{"role": "assistant", "content": _without_nulls(response["content"])}]
    return []


def _without_nulls(value: Any) -> Any:
    """Return blocks without the fields that the SDK adds as null and that requests do not have."""
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None or k == "content"}
    return value


def _object(value: Any) -> Mapping[str, Any]:
    found = parsed(value)
    return found if isinstance(found, dict) else {}
