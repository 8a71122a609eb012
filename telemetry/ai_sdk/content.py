"""The content of a call: the messages, tools and answer in the attributes of the AI SDK's span."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from telemetry.ai_sdk import anthropic, chat, conventions, responses
from telemetry.ai_sdk.parts import JSON, PROVIDER_RUN, words
from telemetry.attributes import number, text
from telemetry.json_text import objects, parsed
from telemetry.values import Conversation

#: Version 5 has neither of the first two, and does not record the reasoning. The history of an application
#: seldom has the reasoning of an object.
_IS_RECORDED = frozenset(
    {"ai.response.reasoning", "ai.usage.outputTokenDetails.reasoningTokens", "ai.response.object"}
)


def conversation(values: Mapping[str, Any]) -> Conversation | None:
    """Return the content of a call, or None if the span has none: `recordInputs` is false."""
    is_bare = conventions.is_version_7(values)
    prompt = conventions.prompt(values) if is_bare else _prompt(values)
    if not prompt:
        return None
    answer = conventions.answer(values) if is_bare else _answer(values)
    tools = objects(values.get("gen_ai.tool.definitions")) or [
        tool for tool in map(parsed, _list(values.get("ai.prompt.tools"))) if isinstance(tool, dict)
    ]
    provider = text(values, "gen_ai.system", "ai.model.provider", "gen_ai.provider.name").lower()
    if "anthropic" in provider:
        return anthropic.conversation(prompt, answer, tools, is_bare=is_bare)
    if "responses" in provider or text(values, "gen_ai.response.id").startswith("resp_"):
        return responses.conversation(prompt, answer, tools, is_bare=is_bare)
    return chat.conversation(prompt, answer, tools)


def _prompt(values: Mapping[str, Any]) -> list[JSON]:
    messages = objects(values.get("ai.prompt.messages"))
    return [_with_one_text(message) for message in messages if "role" in message]


def _with_one_text(message: JSON) -> JSON:
    """Return a message with the text of an answer as one block, as in the span of the answer."""
    parts = objects(message.get("content")) if message["role"] == "assistant" else []
    texts = [part for part in parts if part.get("type") == "text"]
    if len(texts) < 2 or any(part.get("providerExecuted") for part in parts):
        return message
    said = {**texts[0], "text": "".join(words(part) for part in texts)}
    content = [
        said if part is texts[0] else part for part in parts if part is texts[0] or part.get("type") != "text"
    ]
    return {**message, "content": content}


def _answer(values: Mapping[str, Any]) -> list[JSON]:
    """Return the parts of the answer, as in the prompt of a later call.

    Empty if the provider ran a tool: the span does not have its results. The prompt of the next call does.
    """
    reasoning, said = values.get("ai.response.reasoning"), values.get("ai.response.text")
    calls = objects(values.get("ai.response.toolCalls"))
    if any(
        call.get("providerExecuted") or text(call, "toolCallId").startswith(PROVIDER_RUN) for call in calls
    ):
        return []
    said = values.get("ai.response.object") if said is None else said
    if not _IS_RECORDED & values.keys() and number(values, "ai.usage.reasoningTokens"):
        reasoning = ""
    parts: list[JSON] = []
    if isinstance(reasoning, str):
        parts.append({"type": "reasoning", "text": reasoning})
    if isinstance(said, str) and said:
        parts.append({"type": "text", "text": said})
    parts += [{**call, "type": "tool-call"} for call in calls]
    return parts if any(part["type"] != "reasoning" or part["text"] for part in parts) else []


def _list(value: Any) -> list[Any]:
    found = parsed(value)
    return found if isinstance(found, list) else []
