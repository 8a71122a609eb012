"""Sessions: push turns, fetch prompts, compact, search and edit working memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast
from uuid import uuid4

from contextapp_client import payloads, types
from contextapp_client.paging import pages
from contextapp_client.prompt import Prompt
from contextapp_client.transport import Response, Transport

#: Maximum number of prompts cached by ETag, one per combination of parameters.
_MAX_CACHED = 8


class Session:
    """A session, identified by its `id` or your own `external_id`. Creating this object sends no request.

    All methods raise the exceptions of `contextapp_client.errors`. Not thread-safe.
    """

    def __init__(self, transport: Transport, id: str) -> None:
        self.id = id
        self.transport = transport
        self.was_found = False  # whether a call to `sync` has succeeded
        self._cached: dict[tuple[object, ...], tuple[str, bytes]] = {}

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    def info(self) -> types.SessionInfo:
        """Return the session with its counters."""
        return cast(types.SessionInfo, self._call("GET").json())

    def change_policy(self, policy: str | types.JsonObject) -> types.SessionInfo:
        """Replace the session's policy from the next compaction on.

        `policy` is the name of a preset, or an object with `preset` and the settings that differ from it.
        """
        return cast(types.SessionInfo, self._call("PATCH", body={"policy": policy}, repeatable=True).json())

    def change_tags(self, tags: Sequence[str]) -> types.SessionInfo:
        """Replace the session's tags."""
        return cast(types.SessionInfo, self._call("PATCH", body={"tags": list(tags)}, repeatable=True).json())

    def push(
        self,
        messages: Iterable[object],
        *,
        usage: object | None = None,
        latency: types.Latency | None = None,
        model: str | None = None,
        system: object | None = None,
        tools: Iterable[object] | None = None,
        expected_turn: int | None = None,
        idempotency_key: str | None = None,
    ) -> types.PushResult:
        """Push a turn: usually the model's response and the results of its tool calls.

        `messages` are in the provider's format, as dictionaries or SDK objects. A whole response is reduced
        to its message, also sets `usage` and `model` unless they are given, and reports what the provider
        cleared or summarized. `system` and `tools` replace the session's from this turn on. `expected_turn`
        is the index that this turn must get: raises `Conflict` with code `stale_turn` if another writer
        pushed first. `latency` is how long the call took, as you measured it.

        Each push has an idempotency key, so a retry after a lost connection is not stored twice. Pass your
        own key to be safe across restarts of your program.
        """
        body = _push_body(
            messages,
            usage=usage,
            latency=latency,
            model=model or None,
            system=system,
            tools=tools,
            expected_turn=expected_turn,
        )
        response = self._call(
            "POST",
            "turns",
            body=body,
            headers={"Idempotency-Key": idempotency_key or uuid4().hex},
            repeatable=True,
        )
        return cast(types.PushResult, response.json())

    def sync(
        self,
        messages: Iterable[object],
        *,
        usage: object | None = None,
        latency: types.Latency | None = None,
        model: str | None = None,
        system: object | None = None,
        tools: Iterable[object] | None = None,
        compacted: bool | None = None,
        format: types.Format | None = None,
    ) -> Prompt:
        """Send the whole history, instead of pushing new messages, and return the prompt for the next call.

        `messages` are all messages of your history, in the provider's format, as dictionaries or SDK objects.
        New ones are appended as one turn. A history that continues an earlier point becomes a forked session,
        which is used again for later calls with that history; `prompt.reconciled` describes the outcome.
        `usage`, `latency` and `model` are those of the last response in the history. Set `compacted` if you
        replaced messages with a summary. `format` is that of the returned prompt and defaults to the
        session's. Repeating a call has no effect.
        """
        body = _push_body(
            messages,
            usage=usage,
            latency=latency,
            model=model or None,
            system=system,
            tools=tools,
            compacted=compacted,
        )
        response = self._call("POST", "reconcile", body=body, query={"format": format}, repeatable=True)
        self.was_found = True
        return Prompt.read(response.data)

    def turns(self, *, last: int | None = None) -> Iterator[types.Turn]:
        """Iterate over turns with their messages, oldest first; with `last`, only the newest (1 to 200)."""
        if last is None:
            return pages(self.transport, "sessions", self.id, "turns")
        return iter(self._call("GET", "turns", query={"last": last}).json()["data"])

    def prompt(
        self,
        *,
        format: types.Format | None = None,
        at_turn: int | None = None,
        memory: Literal["latest"] | None = None,
        manifest: bool = False,
    ) -> Prompt:
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
        response = self._call("GET", "prompt", query=query, headers={"If-None-Match": etag} if etag else None)
        if response.status == 304:
            return Prompt.read(body)
        self._keep(key, response)
        return Prompt.read(response.data)

    def compact(
        self,
        *,
        instructions: str | None = None,
        policy: str | Mapping[str, object] | None = None,
        preview: bool = False,
    ) -> types.CompactionRecord:
        """Compact the session now. With `preview`, return what a compaction would do without applying it."""
        fields = {"instructions": instructions, "policy": policy, "preview": preview or None}
        body = {name: value for name, value in fields.items() if value is not None}
        return cast(
            types.CompactionRecord, self._call("POST", "compact", body=body, repeatable=preview).json()
        )

    def compactions(self) -> Iterator[types.CompactionRecord]:
        """Iterate over the compactions, newest first."""
        return pages(self.transport, "sessions", self.id, "compactions")

    def record_summary(self, prompt: Prompt, response: Mapping[str, object]) -> types.CompactionRecord:
        """Record the summary that the provider wrote for `prompt.summary_request`.

        `response` is its response as a dict: `message.to_dict()` with Anthropic's SDK.
        """
        if prompt.summary_request is None:
            raise ValueError("the prompt has no `summary_request`")
        names = ("content", "stop_reason", "model", "usage")
        body = {name: response[name] for name in names if response.get(name) is not None}
        body["before"] = prompt.summary_request["before"]
        return cast(types.CompactionRecord, self._call("POST", "compactions", body=body).json())

    def revert(self, number: int) -> types.CompactionRecord:
        """Revert a compaction: remove its edits from the prompt. Its record is kept."""
        response = self._call("POST", "compactions", str(number), "revert")
        return cast(types.CompactionRecord, response.json())

    def pin(self, position: int) -> None:
        """Keep a message and the rest of its tool group unchanged in later compactions."""
        self._call("PUT", "messages", str(position), "pin", repeatable=True)

    def unpin(self, position: int) -> None:
        """Let later compactions shorten or remove a pinned message."""
        self._call("DELETE", "messages", str(position), "pin")

    def memory(self) -> types.Memory:
        """Return the current working memory; revision 0 is empty."""
        return cast(types.Memory, self._call("GET", "memory").json())

    def patch_memory(
        self,
        changes: Mapping[str, object],
        *,
        revision: int | None = None,
        author: Literal["model", "harness", "person"] | None = None,
        reason: str | None = None,
    ) -> types.Memory:
        """Replace fields of the working memory; None clears a field.

        With `revision`, raises `Conflict` with code `precondition_failed` if that is no longer the latest
        revision.
        """
        response = self._call(
            "PATCH",
            "memory",
            body=changes,
            query={"author": author, "reason": reason},
            headers={"If-Match": "*" if revision is None else f'"{revision}"'},
            # Repeating the same change has no effect, but with a revision the second attempt would fail.
            repeatable=revision is None,
        )
        return cast(types.Memory, response.json())

    def memory_offers(self) -> list[types.Fact]:
        """Return accepted facts of other sessions that are not in the working memory yet."""
        return cast(list[types.Fact], self._call("GET", "memory", "offers").json()["data"])

    def take_offers(self, facts: Sequence[str] | None = None) -> types.Memory:
        """Import offered facts into the working memory by id. Defaults to all of them."""
        body = {} if facts is None else {"facts": list(facts)}
        return cast(types.Memory, self._call("POST", "memory", "offers", body=body).json())

    def memory_revisions(self) -> Iterator[types.Memory]:
        """Iterate over all revisions of the working memory, newest first."""
        return pages(self.transport, "sessions", self.id, "memory", "revisions")

    def memory_diff(self, *, first: int | None = None, last: int | None = None) -> types.JsonObject:
        """Return the changes between two revisions, and whether the memory churns.

        Defaults to the changes of the latest revision.
        """
        response = self._call("GET", "memory", "diff", query={"from": first, "to": last})
        return cast(types.JsonObject, response.json())

    def expand(
        self,
        handle: str,
        *,
        offset: int | None = None,
        limit: int | None = None,
        unit: Literal["lines", "characters"] | None = None,
        grep: str | None = None,
        context: int | None = None,
    ) -> types.Content:
        """Return content that was removed from the prompt, by its handle.

        Returns all of it, `limit` lines (or characters) starting at `offset`, or the lines that match the
        regular expression `grep` with `context` lines around each.
        """
        query = {"offset": offset, "limit": limit, "unit": unit, "grep": grep, "context": context}
        return cast(types.Content, self._call("GET", "blobs", handle, query=query).json())

    def search(self, q: str) -> Iterator[types.SearchResult]:
        """Iterate over the 200 best matches for `q`, including messages removed from the prompt."""
        return pages(self.transport, "sessions", self.id, "search", query={"q": q})

    def call_tool(self, name: str, arguments: Mapping[str, Any] | str) -> types.ToolResult:
        """Run one of contextapp's tools with Anthropic's `input` or OpenAI's `arguments`.

        Mistakes of the model do not raise: the result has `is_error` and a message for the model.
        """
        body = {"name": name, "arguments": arguments}
        return cast(types.ToolResult, self._call("POST", "tool_calls", body=body).json())

    def delete(self) -> None:
        """Permanently delete the session. Requires the `admin` scope."""
        self._call("DELETE")

    def _call(self, method: str, *path: str, **options: Any) -> Response:
        return self.transport.call(method, "sessions", self.id, *path, **options)

    def _keep(self, key: tuple[object, ...], response: Response) -> None:
        if etag := response.headers.get("ETag"):
            self._cached.pop(key, None)
            while len(self._cached) >= _MAX_CACHED:
                self._cached.pop(next(iter(self._cached)))
            self._cached[key] = (etag, response.data)


def _push_body(messages: Iterable[object], **given: object) -> dict[str, object]:
    """Return the body with the messages and what their response reports; given fields take precedence."""
    pushed = payloads.read(messages)
    fields = {name: value for name, value in given.items() if value is not None}
    return {"messages": pushed.messages, **pushed.reported, **fields}
