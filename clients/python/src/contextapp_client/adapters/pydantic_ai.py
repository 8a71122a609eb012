"""pydantic-ai: a capability for `Agent` that compacts the messages before each model call.

    agent = Agent("anthropic:claude-sonnet-5-5", capabilities=[ContextAppHistory(session)])

The run's message history stays complete.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from pydantic_ai import AgentRunResult, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext

from contextapp_client.adapters._history import Codec, Message, compact, run, usage_report
from contextapp_client.session import AnySession


@dataclass
class ContextAppHistory(AbstractCapability[Any]):
    """Store the messages in `session` before each model call, and show the model the compacted prompt.

    After the run, the final response is stored as well.
    """

    session: AnySession

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        messages = request_context.messages
        parameters = request_context.model_request_parameters
        tools = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema}
            for tool in parameters.function_tools
        ]
        shown = await self._store(
            messages,
            system=_system(messages),
            tools=[{"type": "function", "function": tool} for tool in tools] or None,
        )
        return replace(request_context, messages=_with_system_prompts(messages, shown))

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        await self._store(result.all_messages())
        return result

    async def _store(self, messages: Sequence[ModelMessage], **fields: Any) -> list[ModelMessage]:
        codec = Codec(format="openai", encode=_encode, decode=_Decoder(messages).decode)
        steps = compact(self.session, messages, codec, **_report(messages), **fields)
        return await run(self.session.transport, steps)


def _system(messages: Sequence[ModelMessage]) -> str | None:
    """Return the instructions and the system prompts as one text."""
    requests = [message for message in messages if isinstance(message, ModelRequest)]
    prompts = [part.content for each in requests for part in each.parts if isinstance(part, SystemPromptPart)]
    instructions = [each.instructions for each in reversed(requests) if each.instructions][:1]
    return "\n\n".join([*prompts, *instructions]) or None


def _with_system_prompts(
    messages: Sequence[ModelMessage], shown: Sequence[ModelMessage]
) -> list[ModelMessage]:
    """Return the shown messages after the system prompts of requests that are shown only in part."""
    kept = {id(part) for message in shown for part in message.parts}
    prompts = [
        part
        for message in messages
        for part in message.parts
        if isinstance(part, SystemPromptPart) and id(part) not in kept
    ]
    return [*([ModelRequest(parts=prompts)] if prompts else ()), *shown]


def _report(messages: Sequence[ModelMessage]) -> dict[str, Any]:
    """Return the model and usage of the last response."""
    last = next((message for message in reversed(messages) if isinstance(message, ModelResponse)), None)
    if last is None:
        return {}
    usage = last.usage
    return {
        "model": last.model_name,
        "usage": usage_report(
            usage.input_tokens,
            usage.output_tokens,
            cache_read=usage.cache_read_tokens,
            cache_write=usage.cache_write_tokens,
        ),
    }


def _encode(message: ModelMessage) -> Sequence[Message]:
    if isinstance(message, ModelResponse):
        return [_assistant(message)]
    return [encoded for part in message.parts if (encoded := _request_part(part)) is not None]


def _assistant(response: ModelResponse) -> Message:
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    calls = [
        {
            "id": part.tool_call_id,
            "type": "function",
            "function": {"name": part.tool_name, "arguments": part.args_as_json_str()},
        }
        for part in response.parts
        if isinstance(part, ToolCallPart)
    ]
    thinking = [_thinking_block(part) for part in response.parts if _is_claude_thinking(part)]
    message: Message = {"role": "assistant", "content": text or (None if calls else "")}
    message |= {"thinking_blocks": thinking} if thinking else {}
    return message | ({"tool_calls": calls} if calls else {})


#: The providers of Claude, by pydantic-ai's names, and the `id` that it gives redacted thinking.
_CLAUDE = frozenset({"anthropic", "bedrock"})
_REDACTED = "redacted_thinking"


def _is_claude_thinking(part: Any) -> TypeGuard[ThinkingPart]:
    """Return whether a part is thinking that must be removed after a compaction if the model binds it."""
    return isinstance(part, ThinkingPart) and part.provider_name in _CLAUDE


def _thinking_block(part: ThinkingPart) -> dict[str, Any]:
    if part.id == _REDACTED:
        return {"type": _REDACTED, "data": part.signature}
    return {"type": "thinking", "thinking": part.content, "signature": part.signature}


def _thinking_part(block: dict[str, Any], provider: str | None) -> ThinkingPart:
    if block["type"] == _REDACTED:
        return ThinkingPart("", id=_REDACTED, signature=block["data"], provider_name=provider)
    return ThinkingPart(block["thinking"], signature=block["signature"], provider_name=provider)


def _request_part(part: Any) -> Message | None:
    """Return a part as a message, or None if it is a system prompt or a setting."""
    if isinstance(part, ToolReturnPart):
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": _tool_content(part)}
    if isinstance(part, UserPromptPart):
        return {"role": "user", "content": _user_content(part.content)}
    if not hasattr(part, "model_response"):
        return None
    if getattr(part, "tool_name", None):  # in histories of earlier versions, the result of a call
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response()}
    return {"role": "user", "content": part.model_response()}


def _tool_content(part: ToolReturnPart) -> Any:
    """Return the text of a result, or a list of its text and its files."""
    text = part.model_response_str()
    files = [_block(file) for file in part.files]
    return [*([{"type": "text", "text": text}] if text else ()), *files] if files else text


def _user_content(content: Any) -> Any:
    if isinstance(content, str):
        return content
    return [_block(item) for item in content if not isinstance(item, CachePoint)]


def _block(item: Any) -> dict[str, Any]:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if isinstance(item, TextContent):
        return {"type": "text", "text": item.content}
    if isinstance(item, ImageUrl):
        return {"type": "image_url", "image_url": {"url": item.url}}
    if isinstance(item, BinaryContent) and item.is_image:
        data = base64.b64encode(item.data).decode()
        return {"type": "image_url", "image_url": {"url": f"data:{item.media_type};base64,{data}"}}
    return {"type": "text", "text": f"[{type(item).__name__} {getattr(item, 'identifier', '')}]"}


class _Decoder:
    """Translate messages that contextapp wrote or shortened. Tool results require the tool's name.

    Of a request that is shown only in part, the parts that are shown stay unchanged.
    """

    def __init__(self, history: Sequence[ModelMessage]) -> None:
        self._parts = {
            json.dumps(encoded, sort_keys=True): part
            for message in history
            if isinstance(message, ModelRequest)
            for part in message.parts
            if (encoded := _request_part(part)) is not None
        }
        self._names = {
            part.tool_call_id: part.tool_name
            for message in history
            for part in message.parts
            if isinstance(part, ToolCallPart)
        }
        thinking = (part for message in history for part in message.parts if _is_claude_thinking(part))
        self._provider = next((part.provider_name for part in thinking), None)

    def decode(self, messages: Sequence[Message]) -> Sequence[ModelMessage]:
        return [self._message(message) for message in messages if message["role"] != "system"]

    def _message(self, message: Message) -> ModelMessage:
        if part := self._parts.get(json.dumps(message, sort_keys=True)):
            return ModelRequest(parts=[part])
        content = message.get("content")
        text = content if isinstance(content, str) else _text(content or [])
        if message["role"] == "tool":
            id = message["tool_call_id"]
            return ModelRequest(parts=[ToolReturnPart(self._names.get(id, "tool"), text, tool_call_id=id)])
        if message["role"] != "assistant":
            return ModelRequest(parts=[UserPromptPart(text)])
        calls = [
            ToolCallPart(call["function"]["name"], call["function"]["arguments"], tool_call_id=call["id"])
            for call in message.get("tool_calls") or ()
        ]
        thinking = [_thinking_part(block, self._provider) for block in message.get("thinking_blocks") or ()]
        return ModelResponse(parts=[*thinking, *([TextPart(text)] if text else []), *calls])


def _text(blocks: Sequence[dict[str, Any]]) -> str:
    return "\n".join(block["text"] for block in blocks if block.get("type") == "text")
