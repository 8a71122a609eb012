"""Sessions: push turns, fetch prompts, compact, search and edit working memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal
from uuid import uuid4

from contextapp_client import payloads, types
from contextapp_client.calls import AsyncCaller, Pages, SyncCaller, call, pages
from contextapp_client.compactions import CompactionCalls
from contextapp_client.memory import MemoryCalls
from contextapp_client.prompt import Prompt
from contextapp_client.steps import Response, Steps, parse
from contextapp_client.transport import AsyncTransport, BaseTransport, SyncTransport

#: Maximum number of prompts cached by ETag, one per combination of parameters.
_MAX_CACHED = 8


class SessionCalls(CompactionCalls, MemoryCalls):
    """The calls of `Session` and `AsyncSession`."""

    def __init__(self, transport: BaseTransport, id: str) -> None:
        self.id = id
        self.transport = transport
        self.was_found = False  # whether a call to `sync` has succeeded
        self._cached: dict[tuple[object, ...], tuple[str, bytes]] = {}
        self._unfinished: tuple[bytes, str] | None = None  # body and key of a push without a result

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"

    @call
    def info(self) -> Steps[types.SessionInfo]:
        """Return the session with its counters."""
        return self._json("GET")

    @call
    def change_policy(self, policy: str | types.JsonObject) -> Steps[types.SessionInfo]:
        """Replace the session's policy from the next compaction on.

        `policy` is the name of a preset, or an object with `preset` and the settings that differ from it.
        """
        return self._json("PATCH", body={"policy": policy}, repeatable=True)

    @call
    def change_budget(self, input_tokens: int | None) -> Steps[types.SessionInfo]:
        """Replace the session's budget from the next compaction on. None restores the default."""
        budget = None if input_tokens is None else {"input_tokens": input_tokens}
        return self._json("PATCH", body={"budget": budget}, repeatable=True)

    @call
    def change_tags(self, tags: Sequence[str]) -> Steps[types.SessionInfo]:
        """Replace the session's tags."""
        return self._json("PATCH", body={"tags": list(tags)}, repeatable=True)

    @call
    def change_title(self, title: str) -> Steps[types.SessionInfo]:
        """Replace the session's title."""
        return self._json("PATCH", body={"title": title}, repeatable=True)

    @call
    def push(
        self,
        messages: Iterable[object],
        *,
        usage: object | None = None,
        latency: types.Latency | None = None,
        model: str | None = None,
        system: object | None = None,
        tools: Iterable[object] | None = None,
        request_id: str | None = None,
        response_id: str | None = None,
        expected_turn: int | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[types.PushResult]:
        """Push a turn: usually the model's response and the results of its tool calls.

        `messages` are in the provider's format, as dictionaries or SDK objects. A whole response is reduced
        to its message, also sets `usage` and `model` unless they are given, and reports what the provider
        cleared or summarized. `system` and `tools` replace the session's from this turn on. `latency` is how
        long the call took, as you measured it. `request_id` (the provider's) and `response_id` (the `id` of
        the response) identify the call if the gateway, telemetry or a log also reports it. `expected_turn` is
        the index that this turn must get: raises `Conflict` with code `stale_turn` if another writer pushed
        first.

        Each push has an idempotency key, so a retry after a lost connection is not stored twice. After a push
        that failed or was cancelled, the next push of the same turn with this object has the same key, and
        is not stored twice either. Pass your own key to be safe across restarts of your program.
        """
        body = yield from _push_body(
            messages,
            usage=usage,
            latency=latency,
            model=model or None,
            system=system,
            tools=tools,
            request_id=request_id or None,
            response_id=response_id or None,
            expected_turn=expected_turn,
        )
        data = yield from payloads.encode_body(body)
        unfinished, self._unfinished = self._unfinished, None
        if idempotency_key is not None:
            key = idempotency_key
        elif unfinished is not None and unfinished[0] == data:
            key = unfinished[1]
        else:
            key = uuid4().hex
        try:
            response = yield from self._call(
                "POST",
                "turns",
                data=data,
                headers={"Idempotency-Key": key, "Content-Type": "application/json"},
                repeatable=True,
            )
            result: types.PushResult = yield from response.parsed()
        except BaseException:  # even if the task is cancelled
            self._unfinished = data, key
            raise
        return result

    @call
    def sync(
        self,
        messages: Iterable[object],
        *,
        usage: object | None = None,
        latency: types.Latency | None = None,
        model: str | None = None,
        system: object | None = None,
        tools: Iterable[object] | None = None,
        request_id: str | None = None,
        response_id: str | None = None,
        compacted: bool | None = None,
        format: types.Format | None = None,
    ) -> Steps[Prompt]:
        """Send the whole history, instead of pushing new messages, and return the prompt for the next call.

        `messages` are all messages of your history, in the provider's format, as dictionaries or SDK objects.
        New ones are appended as one turn. A history that continues an earlier point becomes a forked session,
        which is used again for later calls with that history; `prompt.reconciled` describes the outcome.
        `usage`, `latency`, `model` and the ids are those of the last response in the history. Set
        `compacted` if you replaced messages with a summary. `format` is that of the returned prompt and
        defaults to the session's. Repeating a call has no effect.
        """
        body = yield from _push_body(
            messages,
            usage=usage,
            latency=latency,
            model=model or None,
            system=system,
            tools=tools,
            request_id=request_id or None,
            response_id=response_id or None,
            compacted=compacted,
        )
        response = yield from self._call(
            "POST", "reconcile", body=body, query={"format": format}, repeatable=True
        )
        self.was_found = True
        return (yield from parse(Prompt.read, response.data))

    @pages
    def turns(self, *, last: int | None = None) -> Pages[types.Turn]:
        """Iterate over turns with their messages, oldest first; with `last`, only the newest (1 to 200)."""
        return self._pages("turns", last=last)

    @call
    def prompt(
        self,
        *,
        format: types.Format | None = None,
        at_turn: int | None = None,
        memory: Literal["latest"] | None = None,
        manifest: bool = False,
    ) -> Steps[Prompt]:
        """Fetch the prompt for the next model call, or the prompt after the turn `at_turn`.

        `format` defaults to the session's. `memory="latest"` includes the current working memory instead of
        that of the last compaction, which invalidates the provider's prompt cache. An unchanged prompt is
        served from a local cache, validated by its ETag.
        """
        query = {
            "format": format,
            "at_turn": at_turn,
            "memory": memory,
            "manifest": "1" if manifest else None,
        }
        key = tuple(query.values())
        etag, body = self._cached.get(key, ("", b""))
        headers = {"If-None-Match": etag} if etag else None
        response = yield from self._call("GET", "prompt", query=query, headers=headers)
        if response.status != 304:
            self._keep(key, response)
            body = response.data
        return (yield from parse(Prompt.read, body))

    @pages
    def search(self, q: str) -> Pages[types.SearchResult]:
        """Iterate over the 200 best matches for `q`, including messages removed from the prompt."""
        return self._pages("search", q=q)

    @pages
    def comments(self) -> Pages[types.Comment]:
        """Iterate over the comments that members wrote on turns, oldest first."""
        return self._pages("comments")

    @call
    def call_tool(self, name: str, arguments: Mapping[str, Any] | str) -> Steps[types.ToolResult]:
        """Run one of contextapp's tools with Anthropic's `input` or OpenAI's `arguments`.

        Mistakes of the model do not raise: the result has `is_error` and a message for the model.
        """
        return self._json("POST", "tool_calls", body={"name": name, "arguments": arguments})

    @call
    def export(self) -> Steps[bytes]:
        """Return the session as JSON Lines, which `import_log` can import into another project."""
        response = yield from self._call("GET", "export")
        return response.data

    @call
    def delete(self) -> Steps[None]:
        """Permanently delete the session. Requires the `admin` scope."""
        yield from self._call("DELETE")

    def _keep(self, key: tuple[object, ...], response: Response) -> None:
        if etag := response.headers.get("ETag"):
            self._cached.pop(key, None)
            while len(self._cached) >= _MAX_CACHED:
                self._cached.pop(next(iter(self._cached)))
            self._cached[key] = (etag, response.data)


class Session(SyncCaller, SessionCalls):
    """A session, identified by its `id` or your own `external_id`. Creating this object sends no request.

    All methods raise the exceptions of `contextapp_client.errors`. Not thread-safe.
    """

    transport: SyncTransport


class AsyncSession(AsyncCaller, SessionCalls):
    """A `Session` whose calls are awaited. The lists are asynchronous iterators.

    Do not push several turns of one session at the same time: their order would be undefined.
    """

    transport: AsyncTransport


AnySession = Session | AsyncSession


def _push_body(messages: Iterable[object], **fields: object) -> Steps[dict[str, object]]:
    """Return the body with the messages and what their response reports; given fields take precedence."""
    pushed = yield from payloads.read(messages)
    return {"messages": pushed.messages, **pushed.reported, **payloads.given(**fields)}
