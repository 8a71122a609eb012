"""LangChain: a middleware for `create_agent` that compacts the messages before each model call.

    agent = create_agent("anthropic:claude-sonnet-5-5", tools, middleware=[ContextAppMiddleware(session)])

The agent's state keeps the whole history.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.utils.function_calling import convert_to_openai_tool

from contextapp_client.adapters._history import (
    Codec,
    Message,
    compact,
    run,
    run_blocking,
    usage_report,
)
from contextapp_client.session import AnySession
from contextapp_client.steps import Steps

#: Types of content that OpenAI's messages have. Others depend on the provider.
_CONTENT = frozenset({"text", "image_url", "input_audio", "file", "refusal"})
#: Thinking of Claude, the last one on Bedrock. Some models reject it after a compaction.
_THINKING = frozenset({"thinking", "redacted_thinking", "reasoning_content"})
#: Other reasoning, and calls that `tool_calls` contains as well.
_OMITTED = frozenset({"reasoning", "function_call", "tool_call"})


def _encode(message: BaseMessage) -> Sequence[Message]:
    encoded: Message = convert_to_openai_messages(message)
    if invalid := _invalid_calls(message):
        encoded["tool_calls"] = [*encoded.get("tool_calls", ()), *invalid]
    blocks = encoded.get("content")
    if not isinstance(blocks, list) or all(block.get("type") in _CONTENT for block in blocks):
        return [encoded]
    thinking = [block for block in blocks if _is_thinking(block)]
    content = [
        block if block["type"] in _CONTENT else {"type": "text", "text": f"[{block['type']}]"}
        for block in blocks
        if not _is_thinking(block) and block["type"] not in _OMITTED
    ]
    encoded["content"] = content or (None if encoded.get("tool_calls") else "")
    return [encoded | ({"thinking_blocks": thinking} if thinking else {})]


def _invalid_calls(message: BaseMessage) -> list[Message]:
    """Return the calls whose arguments are not JSON. Their results may follow, so they must be stored."""
    calls = message.invalid_tool_calls if isinstance(message, AIMessage) else ()
    return [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"] or "", "arguments": call["args"] or ""},
        }
        for call in calls
        if call["id"]
    ]


def _is_thinking(block: Message) -> bool:
    """Return whether a block is signed thinking, in the provider's format or LangChain's."""
    kind = block["type"]
    return kind in _THINKING or (kind == "reasoning" and "signature" in block.get("extras", {}))


def _decode(messages: Sequence[Message]) -> Sequence[BaseMessage]:
    """Decode messages without the session's system prompt, which the model receives from the request."""
    shown = [_with_thinking(message) for message in messages if message["role"] != "system"]
    return convert_to_messages(shown)


def _with_thinking(message: Message) -> Message:
    """Return a message of `_encode` with its thinking in the content, where LangChain keeps it."""
    thinking = message.get("thinking_blocks")
    if not thinking:
        return message
    content = message["content"] or []
    text = [{"type": "text", "text": content}] if isinstance(content, str) else content
    kept = {name: value for name, value in message.items() if name != "thinking_blocks"}
    return kept | {"content": [*thinking, *text]}


_CODEC: Codec[Any] = Codec(format="openai", encode=_encode, decode=_decode)


class ContextAppMiddleware(AgentMiddleware):
    """Store the messages in `session` before each model call, and show the model the compacted prompt.

    After the run, the final response is stored as well. Add this middleware last, so that it receives the
    messages with the changes of the others.
    """

    def __init__(self, session: AnySession) -> None:
        super().__init__()
        self.session = session
        self._summary = ""  # the text of the last stored summary

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse:
        shown = run_blocking(self.session.transport, self._shown(request))
        return handler(request.override(messages=shown))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        shown = await run(self.session.transport, self._shown(request))
        return await handler(request.override(messages=shown))

    def after_agent(self, state: AgentState, runtime: Any) -> None:
        run_blocking(self.session.transport, self._store(state["messages"]))

    async def aafter_agent(self, state: AgentState, runtime: Any) -> None:
        await run(self.session.transport, self._store(state["messages"]))

    def _shown(self, request: ModelRequest) -> Steps[list[AnyMessage]]:
        system = request.system_message
        return self._store(
            request.messages,
            system=system.text if system else None,
            tools=[_tool(tool) for tool in request.tools] or None,
        )

    def _store(self, messages: Sequence[AnyMessage], **fields: Any) -> Steps[list[AnyMessage]]:
        summary = next((message.text for message in messages if _is_summary(message)), "")
        if summary not in ("", self._summary):
            fields["compacted"] = True

        def stored(_: str) -> None:
            self._summary = summary

        return compact(self.session, messages, _CODEC, reconciled=stored, **_report(messages), **fields)


def _is_summary(message: BaseMessage) -> bool:
    """Return whether LangChain's `SummarizationMiddleware` wrote a message in place of others."""
    return message.additional_kwargs.get("lc_source") == "summarization"


def _tool(tool: Any) -> Message:
    """Return a tool in OpenAI's format. A provider's own tool without a type is named by its first key."""
    try:
        return convert_to_openai_tool(tool)
    except ValueError:
        return {"type": next(iter(tool)), **tool}


def _report(messages: Sequence[AnyMessage]) -> dict[str, Any]:
    """Return the model and usage of the last response."""
    last = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    if last is None or last.usage_metadata is None:
        return {}
    usage = last.usage_metadata
    details = usage.get("input_token_details", {})
    return {
        "model": last.response_metadata.get("model_name"),
        "usage": usage_report(
            usage["input_tokens"],
            usage["output_tokens"],
            cache_read=details.get("cache_read", 0),
            cache_write=details.get("cache_creation", 0),
        ),
    }
