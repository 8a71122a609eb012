"""OpenAI Agents SDK: a session for `Runner` that also compacts the input of each model call.

memory = ContextAppSession(app.session("fix-the-build", create={"format": "openai-responses"}))
await Runner.run(agent, "Why does the build fail?", **memory.run_arguments())
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from agents import RunConfig, RunHooks
from agents.memory import SessionABC
from agents.models.fake_id import FAKE_RESPONSES_ID
from agents.run import CallModelData, ModelInputData

from contextapp_client.adapters import _branches
from contextapp_client.adapters._history import Codec, Message, compact, run
from contextapp_client.session import AnySession, SessionCalls
from contextapp_client.steps import Steps


def _decode(messages: Sequence[Message]) -> list[Any]:
    """Return messages with the placeholder that the SDK requires of an answer without an id.

    contextapp does not return the placeholder, because OpenAI would reject it. The SDK removes it as well.
    """
    return [
        {"id": FAKE_RESPONSES_ID, **message}
        if message.get("type") == "message" and message.get("role") == "assistant"
        else message
        for message in messages
    ]


_CODEC: Codec[Any] = Codec(format="openai-responses", encode=lambda item: [dict(item)], decode=_decode)


class ContextAppSession(SessionABC):
    """Store the items of runs in `session`, and show the model the compacted prompt at each call.

    The history is read from contextapp once, and kept in memory for later runs. An item removed with
    `pop_item` remains stored; when the next items are added, the history continues in a fork, which later
    processes find.
    """

    def __init__(self, session: AnySession) -> None:
        self.session_id = session.id
        self._session = session
        self._items: list[Any] | None = None
        self._branch = ""  # the id of the session that contains the history, if it is known
        self._last = _LastResponse()

    def run_arguments(
        self, run_config: RunConfig | None = None, hooks: RunHooks[Any] | None = None
    ) -> dict[str, Any]:
        """Return the arguments `session`, `run_config` and `hooks` of `Runner.run`.

        A `call_model_input_filter` of `run_config` receives the compacted input. `hooks` receive all events.
        """
        given = run_config or RunConfig()
        config = replace(given, call_model_input_filter=self._filter(given.call_model_input_filter))
        return {"session": self, "run_config": config, "hooks": _Hooks(self._last, hooks or RunHooks())}

    async def get_items(self, limit: int | None = None) -> list[Any]:
        items = await self._history()
        return list(items if limit is None else items[max(0, len(items) - limit) :])

    async def add_items(self, items: list[Any]) -> None:
        self._items = [*await self._history(), *items]
        await self._store(self._items, reconciled=self._stored_in)

    async def pop_item(self) -> Any | None:
        history = await self._history()
        return history.pop() if history else None

    async def clear_session(self) -> None:
        """Replace the session by an empty one. Requires an API key with the `admin` scope."""
        self._session = await run(self._session.transport, _branches.restart(self._session))
        self._items = []
        self._branch = ""
        self._last.clear()

    async def _history(self) -> list[Any]:
        if self._items is None:
            self._items = await run(self._session.transport, self._stored())
        return self._items

    async def _store(self, items: list[Any], **fields: Any) -> list[Any]:
        steps = compact(self._session, items, _CODEC, **self._last.report(items), **fields)
        return await run(self._session.transport, steps)

    def _stored(self) -> Steps[list[Any]]:
        branch = yield from _branches.latest(self._session)
        turns = yield from SessionCalls.turns(branch).items()
        return [message for turn in turns for message in turn["messages"]]

    def _stored_in(self, branch: str) -> Steps[None]:
        """Mark the session that contains the history if the history left the one that contained it before."""
        if not self._branch:
            latest = yield from _branches.latest(self._session)
            self._branch = (yield from SessionCalls.info(latest))["id"]
        if branch != self._branch:
            yield from _branches.mark(self._session, branch)
            self._branch = branch

    def _filter(self, following: Any) -> Callable[[CallModelData[Any]], Awaitable[ModelInputData]]:
        async def filtered(data: CallModelData[Any]) -> ModelInputData:
            compacted = await self._compacted(data)
            if following is None:
                return compacted
            result = following(replace(data, model_data=compacted))
            return await result if inspect.isawaitable(result) else result

        return filtered

    async def _compacted(self, data: CallModelData[Any]) -> ModelInputData:
        given = data.model_data
        shown = await self._store(given.input, system=given.instructions)
        return ModelInputData(input=shown, instructions=given.instructions)


class _LastResponse:
    """The model and usage of a run's last response, for the next request to contextapp."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._report: dict[str, Any] = {}
        self._calls: set[str] = set()

    def keep(self, agent: Any, response: Any) -> None:
        usage = response.usage
        self._calls = {item.call_id for item in response.output if getattr(item, "call_id", None)}
        self._report = {
            "model": agent.model if isinstance(agent.model, str) else None,
            "usage": {
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "input_tokens_details": {"cached_tokens": usage.input_tokens_details.cached_tokens},
            },
        }

    def report(self, items: Sequence[Any]) -> dict[str, Any]:
        """Return the model and usage of the response, or nothing if its calls are not among the items.

        They are not in the history of an agent that one of these calls started (`Agent.as_tool`). Its run has
        the filter of this run, but no hooks.
        """
        known = {item.get("call_id") for item in items}
        return self._report if not self._calls or self._calls & known else {}


class _Hooks(RunHooks):
    """Keep each response, and pass all events to the application's hooks."""

    def __init__(self, last: _LastResponse, following: RunHooks[Any]) -> None:
        self._last = last
        self._following = following

    def __getattribute__(self, name: str) -> Any:
        is_event = name.startswith("on_") and name != "on_llm_end"
        return getattr(self._following, name) if is_event else super().__getattribute__(name)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        self._last.keep(agent, response)
        await self._following.on_llm_end(context, agent, response)
