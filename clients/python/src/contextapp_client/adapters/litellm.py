"""LiteLLM: a callback that compacts the messages of `litellm.acompletion`, the router and the proxy.

    litellm.callbacks = [ContextAppCallback(app)]
    await litellm.acompletion(model="…", messages=history, metadata={"session_id": "fix-the-build"})

Pass the whole history each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from litellm.integrations.custom_logger import CustomLogger
from litellm.types.utils import ModelResponse

from contextapp_client.adapters._history import Codec, Message, run
from contextapp_client.adapters._sessions import Sessions
from contextapp_client.client import AsyncContextApp, ContextApp
from contextapp_client.types import NewSession

#: Maximum number of pending calls whose history is kept.
_MAX_PENDING = 1_000
#: Seconds that a call waits until the response that it continues is stored.
_PATIENCE = 1.0
#: Fields that LiteLLM adds to messages for itself.
_OWN_FIELDS = frozenset({"images", "provider_specific_fields", "reasoning_items"})
#: Types of content that only LiteLLM has. They are stored as text; the model receives the original.
_OWN_CONTENT = frozenset({"video_url", "guarded_text"})


def _encode(message: Message) -> Sequence[Message]:
    """Return a message without null fields, except `content`, and without LiteLLM's own fields.

    LiteLLM returns a refusal or an empty answer without any content.
    """
    given = {name: value for name, value in message.items() if name not in _OWN_FIELDS}
    encoded = {name: value for name, value in given.items() if value is not None or name == "content"}
    is_empty = encoded.get("content") is None and message["role"] == "assistant"
    if is_empty and not encoded.keys() & {"tool_calls", "function_call", "refusal", "audio"}:
        encoded["content"] = ""
    if isinstance(encoded.get("content"), list):
        encoded["content"] = [_block(block) for block in encoded["content"]]
    return [encoded]


def _block(block: Message) -> Message:
    kind = block["type"]
    return {"type": "text", "text": block.get("text", f"[{kind}]")} if kind in _OWN_CONTENT else block


_CODEC: Codec[Message] = Codec(format="openai", encode=_encode, decode=list)


@dataclass(slots=True, kw_only=True)
class _Pending:
    """A call whose response is not stored yet."""

    session_id: str
    history: list[Message]
    is_storing: bool = False
    done: asyncio.Event = field(default_factory=asyncio.Event)


class ContextAppCallback(CustomLogger):
    """Store the messages of each chat completion in a session, and show the model the compacted prompt.

    The session's id is `metadata["session_id"]` or `litellm_session_id`; calls without an id are not changed.
    New sessions are created with the settings `create`. LiteLLM has no hook for the synchronous
    `litellm.completion`.
    """

    def __init__(self, app: ContextApp | AsyncContextApp, *, create: NewSession | None = None) -> None:
        super().__init__()
        self._app = app
        self._sessions = Sessions(app, create)
        self._pending: dict[str, _Pending] = {}

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: object
    ) -> dict[str, Any] | None:
        session_id = _session_id(kwargs)
        history = kwargs.get("messages")
        if session_id is None or not history:
            return None
        await self._previous_stored(session_id, history)
        self._pending[kwargs["litellm_call_id"]] = _Pending(session_id=session_id, history=list(history))
        while len(self._pending) > _MAX_PENDING:
            del self._pending[next(iter(self._pending))]
        tools = kwargs.get("tools")
        messages = await run(
            self._app.transport, self._sessions.compact(session_id, history, _CODEC, tools=tools)
        )
        return kwargs | {"messages": messages}

    async def _previous_stored(self, session_id: str, history: Sequence[Message]) -> None:
        """Wait until the response that a history continues is stored, with its usage.

        LiteLLM reports a streamed response some time after its end.
        """
        for call_id, call in list(self._pending.items()):
            count = len(call.history)
            is_continued = count < len(history) and list(history[:count]) == call.history
            if call.session_id == session_id and is_continued:
                with suppress(TimeoutError):
                    await asyncio.wait_for(call.done.wait(), _PATIENCE)
                self._pending.pop(call_id, None)

    async def async_post_call_success_deployment_hook(
        self, request_data: dict[str, Any], response: Any, call_type: object
    ) -> None:
        await self._store_response(request_data, response)

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: object, end_time: object
    ) -> None:
        # Streamed responses are complete only here.
        await self._store_response(kwargs.get("litellm_params", {}) | kwargs, response_obj)

    async def _store_response(self, request: Mapping[str, Any], received: Any) -> None:
        if not isinstance(received, ModelResponse) or not received.choices:
            return
        call_id = request["litellm_call_id"]
        call = self._pending.get(call_id)
        if call is None or call.is_storing:
            return
        call.is_storing = True
        response = received.model_dump(mode="json", exclude_none=True)
        answer = response["choices"][0]["message"]
        report = {"usage": response.get("usage"), "model": response.get("model")}
        try:
            steps = self._sessions.compact(call.session_id, [*call.history, answer], _CODEC, **report)
            await run(self._app.transport, steps)
        finally:
            self._pending.pop(call_id, None)
            call.done.set()

    async def async_log_failure_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: object, end_time: object
    ) -> None:
        self._pending.pop(kwargs["litellm_call_id"], None)


def _session_id(kwargs: Mapping[str, Any]) -> str | None:
    metadata = kwargs.get("metadata") or {}
    return metadata.get("session_id") or kwargs.get("litellm_session_id")
