"""The content of a call: the messages, tools and answer in the attributes of the AI SDK's span."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from telemetry.ai_sdk import anthropic, chat, responses
from telemetry.ai_sdk.parts import JSON
from telemetry.attributes import number, text
from telemetry.json_text import objects, parsed
from telemetry.values import Conversation

#: Beginnings of the ids of calls of tools that the provider runs.
_PROVIDER_RUN = ("srvtoolu_", "mcptoolu_", "ws_", "fs_", "ci_", "ig_", "mcp_")

#: Version 5 has neither of them, and does not record the reasoning.
_IS_RECORDED = frozenset({"ai.response.reasoning", "ai.usage.outputTokenDetails.reasoningTokens"})


def conversation(values: Mapping[str, Any]) -> Conversation | None:
    """Return the content of a call, or None if the span has none: `recordInputs` is false."""
    prompt = [message for message in objects(values.get("ai.prompt.messages")) if "role" in message]
    if not prompt:
        return None
    tools = [tool for tool in map(parsed, _list(values.get("ai.prompt.tools"))) if isinstance(tool, dict)]
    provider = text(values, "gen_ai.system", "ai.model.provider").lower()
    answer = _answer(values)
    if "anthropic" in provider:
        return anthropic.conversation(prompt, answer, tools)
    if "responses" in provider:
        return responses.conversation(prompt, answer, tools)
    return chat.conversation(prompt, answer, tools)


def _answer(values: Mapping[str, Any]) -> list[JSON]:
    """Return the parts of the answer, as in the prompt of a later call.

    Empty if the provider ran a tool: the span does not have its results. The prompt of the next call does.
    """
    reasoning, said = values.get("ai.response.reasoning"), values.get("ai.response.text")
    calls = objects(values.get("ai.response.toolCalls"))
    if any(
        call.get("providerExecuted") or text(call, "toolCallId").startswith(_PROVIDER_RUN) for call in calls
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
