"""One session: push turns, fetch prompts, and what goes with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast
from uuid import uuid4

from contextapp_client import payloads, types
from contextapp_client.paging import pages
from contextapp_client.prompt import Prompt
from contextapp_client.transport import Answer, Transport

#: Prompts kept with their ETags, one for each way of asking.
_MAX_CACHED = 8


class Session:
    """A session by its id, the server's or your own. Making this object asks the server nothing.

    Every call raises the errors of `contextapp_client.errors`. One object is for one thread at a time.
    """

    def __init__(self, transport: Transport, id: str) -> None:
        self.id = id
        self._transport = transport
        self._cached: dict[tuple[object, ...], tuple[str, bytes]] = {}

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    def info(self) -> types.SessionInfo:
        """The session with its counters."""
        return cast(types.SessionInfo, self._call("GET").json())

    def push(
        self,
        messages: Iterable[object],
        *,
        usage: object | None = None,
        model: str | None = None,
        system: object | None = None,
        tools: Iterable[object] | None = None,
        expected_turn: int | None = None,
        idempotency_key: str | None = None,
    ) -> types.PushResult:
        """Append one turn: usually the model's answer with the results of its tool calls.

        `messages` are the provider's, as dictionaries or as the objects of its SDK; a whole response among
        them is reduced to its message and gives `usage` and `model` where they are not named. `system` and
        `tools` replace the session's from here on. `expected_turn` is the number that this turn must get: a
        `Conflict` with code `stale_turn` says that another writer came first.

        Sent again after a lost connection without being stored twice: each call has an idempotency key. Give
        your own to be as safe over a restart of your program.
        """
        pushed = payloads.read(messages)
        given = {
            "messages": pushed.messages,
            "usage": pushed.usage if usage is None else usage,
            "model": model or pushed.model,
            "system": system,
            "tools": tools,
            "expected_turn": expected_turn,
        }
        answer = self._call(
            "POST",
            "turns",
            body={name: value for name, value in given.items() if value is not None},
            headers={"Idempotency-Key": idempotency_key or uuid4().hex},
            repeatable=True,
        )
        return cast(types.PushResult, answer.json())

    def turns(self, *, last: int | None = None) -> Iterator[types.Turn]:
        """The turns with their messages, oldest first; with `last` the newest so many (1 to 200)."""
        if last is None:
            return pages(self._transport, "sessions", self.id, "turns")
        return iter(self._call("GET", "turns", query={"last": last}).json()["data"])

    def prompt(
        self,
        *,
        format: types.Format | None = None,
        at_turn: int | None = None,
        memory: Literal["latest"] | None = None,
        manifest: bool = False,
    ) -> Prompt:
        """The prompt to send now, in the session's format or the other; with `at_turn` that of a past turn.

        `memory="latest"` shows working memory as it is now and not as the last compaction left it, which
        costs the provider's prompt cache. Where nothing changed since the last call, the server sends none.
        """
        query = {
            "format": format,
            "at_turn": at_turn,
            "memory": memory,
            "manifest": "1" if manifest else None,
        }
        key = tuple(query.values())
        etag, body = self._cached.get(key, ("", b""))
        answer = self._call("GET", "prompt", query=query, headers={"If-None-Match": etag} if etag else None)
        if answer.status == 304:
            return Prompt.read(body)
        self._keep(key, answer)
        return Prompt.read(answer.data)

    def compact(
        self,
        *,
        instructions: str | None = None,
        policy: str | Mapping[str, object] | None = None,
        preview: bool = False,
    ) -> types.CompactionRecord:
        """Compact now. `preview` shows what would be done and does nothing."""
        given = {"instructions": instructions, "policy": policy, "preview": preview or None}
        body = {name: value for name, value in given.items() if value is not None}
        return cast(
            types.CompactionRecord, self._call("POST", "compact", body=body, repeatable=preview).json()
        )

    def compactions(self) -> Iterator[types.CompactionRecord]:
        """The records of the compactions, newest first."""
        return pages(self._transport, "sessions", self.id, "compactions")

    def revert(self, number: int) -> types.CompactionRecord:
        """Take the edits of one compaction back; its record stays."""
        answer = self._call("POST", "compactions", str(number), "revert")
        return cast(types.CompactionRecord, answer.json())

    def memory(self) -> types.Memory:
        """Working memory as it is now; revision 0 is the empty one that nobody wrote."""
        return cast(types.Memory, self._call("GET", "memory").json())

    def patch_memory(
        self,
        changes: Mapping[str, object],
        *,
        revision: int | None = None,
        author: Literal["model", "harness", "person"] | None = None,
        reason: str | None = None,
    ) -> types.Memory:
        """Replace some fields of working memory; None clears one. With `revision` only if it is still that
        one: a `Conflict` with code `precondition_failed` says that it is not."""
        answer = self._call(
            "PATCH",
            "memory",
            body=changes,
            query={"author": author, "reason": reason},
            headers={"If-Match": "*" if revision is None else f'"{revision}"'},
            # The same fields once more change nothing; under a revision the second time would be refused.
            repeatable=revision is None,
        )
        return cast(types.Memory, answer.json())

    def memory_offers(self) -> list[types.Fact]:
        """Facts of other sessions that were accepted and that working memory does not have."""
        return cast(list[types.Fact], self._call("GET", "memory", "offers").json()["data"])

    def take_offers(self, facts: Sequence[str] | None = None) -> types.Memory:
        """Take facts that are offered into working memory, by their ids; all of them without any."""
        body = {} if facts is None else {"facts": list(facts)}
        return cast(types.Memory, self._call("POST", "memory", "offers", body=body).json())

    def memory_revisions(self) -> Iterator[types.Memory]:
        """All revisions of working memory, newest first."""
        return pages(self._transport, "sessions", self.id, "memory", "revisions")

    def memory_diff(self, *, first: int | None = None, last: int | None = None) -> types.JsonObject:
        """What changed from one revision to another, else in the newest one, and whether memory churns."""
        answer = self._call("GET", "memory", "diff", query={"from": first, "to": last})
        return cast(types.JsonObject, answer.json())

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
        """What stands behind a handle: all of it, `limit` lines (or characters) from `offset`, or the lines
        that match the regular expression `grep` with `context` lines around each."""
        query = {"offset": offset, "limit": limit, "unit": unit, "grep": grep, "context": context}
        return cast(types.Content, self._call("GET", "blobs", handle, query=query).json())

    def search(self, q: str) -> Iterator[types.Hit]:
        """The messages that hold all the words of `q`, also those that the prompt no longer shows."""
        return pages(self._transport, "sessions", self.id, "search", query={"q": q})

    def call_tool(self, name: str, arguments: Mapping[str, Any] | str) -> types.ToolAnswer:
        """Run one of contextapp's tools for the model: Anthropic's `input`, or OpenAI's `arguments`.

        What the model got wrong comes back as an answer with `is_error`, to be handed to it.
        """
        body = {"name": name, "arguments": arguments}
        return cast(types.ToolAnswer, self._call("POST", "tool_calls", body=body).json())

    def delete(self) -> None:
        """Delete the session with everything that only it used. Needs the scope `admin`."""
        self._call("DELETE")

    def _call(self, method: str, *path: str, **options: Any) -> Answer:
        return self._transport.call(method, "sessions", self.id, *path, **options)

    def _keep(self, key: tuple[object, ...], answer: Answer) -> None:
        if etag := answer.headers.get("ETag"):
            self._cached.pop(key, None)
            while len(self._cached) >= _MAX_CACHED:
                self._cached.pop(next(iter(self._cached)))
            self._cached[key] = (etag, answer.data)
