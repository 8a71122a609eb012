"""LangChain and LangGraph: compact the messages before each model call. The state keeps the whole history.

A middleware for `create_agent`, and a function for graphs that call the model themselves:

    agent = create_agent("anthropic:claude-sonnet-5-5", tools, middleware=[ContextAppMiddleware(app)])
    answer = model.invoke(compact_messages(session, state["messages"], tools=tools))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import takewhile
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    SystemMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config

from contextapp_client.adapters._history import (
    Codec,
    Message,
    compact,
    run,
    run_blocking,
    usage_report,
)
from contextapp_client.adapters._sessions import Sessions
from contextapp_client.client import AppCalls, AsyncContextApp, ContextApp
from contextapp_client.session import AnySession, AsyncSession, Session
from contextapp_client.steps import Steps
from contextapp_client.types import NewSession

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


#: Maximum number of conversations whose last summary is remembered.
_MAX_SUMMARIES = 10_000


class ContextAppMiddleware(AgentMiddleware):
    """Store the messages before each model call, and show the model the compacted prompt.

    After the run, the final response is stored as well. To use an agent for several conversations, pass a
    `ContextApp` or `AsyncContextApp` as `session`: each `thread_id` of LangGraph's config is then the id of a
    session, which is created with the settings `create`. Add this middleware last, so that it receives the
    messages with the changes of the others.
    """

    def __init__(
        self, session: AnySession | ContextApp | AsyncContextApp, *, create: NewSession | None = None
    ) -> None:
        super().__init__()
        self.session = Sessions(session, create) if isinstance(session, AppCalls) else session
        self._transport = session.transport
        self._summaries: dict[str, str] = {}  # the text of the last stored summary, by thread

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse:
        shown = run_blocking(self._transport, self._shown(request))
        return handler(request.override(messages=shown))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        shown = await run(self._transport, self._shown(request))
        return await handler(request.override(messages=shown))

    def after_agent(self, state: AgentState, runtime: Any) -> None:
        run_blocking(self._transport, self._store(state["messages"]))

    async def aafter_agent(self, state: AgentState, runtime: Any) -> None:
        await run(self._transport, self._store(state["messages"]))

    def _shown(self, request: ModelRequest) -> Steps[list[AnyMessage]]:
        system = request.system_message
        return self._store(
            request.messages,
            system=system.text if system else None,
            tools=[_tool(tool) for tool in request.tools] or None,
        )

    def _store(self, messages: Sequence[AnyMessage], **fields: Any) -> Steps[list[AnyMessage]]:
        thread = _thread_id() if isinstance(self.session, Sessions) else ""
        summary = next((message.text for message in messages if _is_summary(message)), "")
        if summary not in ("", self._summaries.get(thread)):
            fields["compacted"] = True

        def stored(_: str) -> None:
            if summary:
                while len(self._summaries) >= _MAX_SUMMARIES:
                    del self._summaries[next(iter(self._summaries))]
                self._summaries[thread] = summary

        options = {"reconciled": stored, **_report(messages), **fields}
        if isinstance(self.session, Sessions):
            return self.session.compact(thread, messages, _CODEC, **options)
        return compact(self.session, messages, _CODEC, **options)


def compact_messages(
    session: Session, messages: Sequence[AnyMessage], *, tools: Sequence[Any] = ()
) -> list[AnyMessage]:
    """Store the messages of a conversation in `session`, and return those that the model should see.

    For graphs that call the model themselves. Leading system messages stay in front. Call it with the last
    answer too to store it, if no further call follows.
    """
    system, steps = _compacted(session, messages, tools)
    return [*system, *run_blocking(session.transport, steps)]


async def acompact_messages(
    session: AsyncSession, messages: Sequence[AnyMessage], *, tools: Sequence[Any] = ()
) -> list[AnyMessage]:
    """Do the same as `compact_messages` with an `AsyncContextApp`."""
    system, steps = _compacted(session, messages, tools)
    return [*system, *(await run(session.transport, steps))]


def _compacted(
    session: AnySession, messages: Sequence[AnyMessage], tools: Sequence[Any]
) -> tuple[list[AnyMessage], Steps[list[AnyMessage]]]:
    """Return the leading system messages, and the steps that compact the others."""
    history = convert_to_messages(messages)
    system = list(takewhile(lambda message: isinstance(message, SystemMessage), history))
    steps = compact(
        session,
        history[len(system) :],
        _CODEC,
        system="\n\n".join(message.text for message in system) or None,
        tools=[_tool(tool) for tool in tools] or None,
        **_report(history),
    )
    return system, steps


def _thread_id() -> str:
    """Return the thread of the current run. Raises `ValueError`."""
    thread: object = get_config().get("configurable", {}).get("thread_id")
    if not thread:
        raise ValueError(
            "The run has no `thread_id`, which is the id of its session. Pass the config "
            '`{"configurable": {"thread_id": "…"}}` to the run, or a session to the middleware.'
        )
    return str(thread)


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
