"""The clients: access to one server with one API key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Generic, Literal, Self, TypeVar
from uuid import uuid4

import httpx2

from contextapp_client import payloads, types
from contextapp_client.calls import AsyncCaller, Pages, SyncCaller, call, pages
from contextapp_client.project import ProjectCalls
from contextapp_client.session import AsyncSession, Session
from contextapp_client.steps import Steps
from contextapp_client.transport import AsyncTransport, SyncTransport

S = TypeVar("S", Session, AsyncSession)
Grouping = Literal["day", "model", "agent", "tag"]


class AppCalls(ProjectCalls, Generic[S]):
    """The calls of `ContextApp` and `AsyncContextApp`."""

    _session_type: type[S]

    @property
    def base_url(self) -> str:
        return self.transport.base_url

    @call
    def session(self, id: str | None = None, *, create: types.NewSession | None = None) -> Steps[S]:
        """Return the session with this id.

        With `create`, or without an id, the session is created if it does not exist. An existing session is
        not changed.
        """
        if create is not None and create.get("id", id) != id:
            raise ValueError("pass the id of the session as the first argument, not in `create`")
        name = id or uuid4().hex
        if create is not None or id is None:
            body = {**(create or {}), "id": name, "if_exists": "return"}
            yield from self.transport.call("POST", "sessions", body=body, repeatable=True)
        return self._session_type(self.transport, name)

    @pages
    def sessions(
        self,
        *,
        q: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        tag: str | None = None,
        metadata: tuple[str, str] | None = None,
        active_from: datetime | None = None,
        active_to: datetime | None = None,
        min_peak_tokens: int | None = None,
    ) -> Pages[types.SessionInfo]:
        """Iterate over the sessions that match all filters, most recently active first.

        The words of `q` must all occur in the title, external id, agent, model or tags. `metadata` is a
        top-level key and its value. Times must be timezone-aware.
        """
        query = {
            "q": q,
            "agent": agent,
            "model": model,
            "tag": tag,
            "metadata": metadata and ":".join(metadata),
            "active_from": active_from and active_from.isoformat(),
            "active_to": active_to and active_to.isoformat(),
            "min_peak_tokens": min_peak_tokens,
        }
        return Pages(self.transport, ("sessions",), query)

    @pages
    def search(self, q: str) -> Pages[types.SearchResult]:
        """Iterate over the 200 best matches for `q` in the messages of all sessions."""
        return Pages(self.transport, ("search",), {"q": q})

    @call
    def tools(self, format: types.Format = "anthropic") -> Steps[list[types.JsonObject]]:
        """Return the definitions of contextapp's tools for the agent's model.

        Add them to your own tools, and run the model's calls to them with `Session.call_tool`.
        """
        found = yield from self.transport.json("GET", "tools", query={"format": format})
        tools: list[types.JsonObject] = found["tools"]
        return tools

    @call
    def usage(
        self,
        *,
        group_by: Grouping | Sequence[Grouping] = (),
        since: date | None = None,
        until: date | None = None,
        time_zone: str | None = None,
    ) -> Steps[types.Usage]:
        """Return tokens and cost (in micro-dollars) of the project.

        `since` and `until` are inclusive. Defaults to the last 30 days, grouped by day.
        """
        query = {
            "group_by": (group_by if isinstance(group_by, str) else ",".join(group_by)) or None,
            "from": since and since.isoformat(),
            "to": until and until.isoformat(),
            "time_zone": time_zone,
        }
        return self.transport.json("GET", "usage", query=query)

    @call
    def compact(
        self,
        params: Mapping[str, object],
        *,
        budget: int | None = None,
        model: str | None = None,
        policy: str | types.JsonObject | None = None,
        window: types.MessageWindow | None = None,
        format: types.Format | None = None,
        force: bool = False,
    ) -> Steps[types.CompactedPrompt]:
        """Compact messages that you keep, without a session. Nothing is stored, and no model is called.

        `params` contains `messages` and optionally `system` and `tools`, or `input` and `instructions` of
        OpenAI's Responses API, or `contents` and `config` of Gemini. `budget` is in input tokens and defaults
        to the model's. Messages below the policy's hard trigger stay unchanged, unless `force`. `window`
        first removes the oldest messages by number.
        """
        fields = payloads.given(
            budget={"input_tokens": budget} if budget is not None else None,
            model=model,
            policy=policy,
            window=window,
            format=format,
            force=force,
        )
        body = {**payloads.prompt_fields(params), **fields}
        return self.transport.json("POST", "prompts", "compact", body=body, repeatable=True)

    @call
    def validate(
        self, params: Mapping[str, object], *, format: types.Format = "anthropic", model: str | None = None
    ) -> Steps[list[types.Violation]]:
        """Return the provider rules that a prompt violates, an empty list if it is valid.

        `params` are as in `compact`. Nothing is stored.
        """
        body = {**payloads.prompt_fields(params), "format": format, **({"model": model} if model else {})}
        found = yield from self.transport.json("POST", "prompts", "validate", body=body, repeatable=True)
        violations: list[types.Violation] = found["violations"]
        return violations


class ContextApp(SyncCaller, AppCalls[Session]):
    """A client of a contextapp server. Thread-safe.

    `base_url` is the URL of the server, with or without `/api/v1`. `timeout` is in seconds and applies to
    each attempt. `retries` is the maximum number of retries. Requests that are safe to repeat are retried
    after lost connections, rate limits and temporary server errors, with exponential backoff or after the
    time given in `Retry-After`. More than `max_connections` requests at the same time wait for each other.
    `http_client` sends the requests instead of a connection pool of this client, for example through a proxy.
    The client does not close it.
    """

    transport: SyncTransport
    _session_type = Session

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float = 30,
        retries: int = 4,
        max_connections: int = 50,
        http_client: httpx2.Client | None = None,
    ) -> None:
        self.transport = SyncTransport(
            base_url,
            api_key,
            timeout=timeout,
            retries=retries,
            max_connections=max_connections,
            http_client=http_client,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def close(self) -> None:
        """Close the pooled connections."""
        self.transport.close()


class AsyncContextApp(AsyncCaller, AppCalls[AsyncSession]):
    """A `ContextApp` whose calls are awaited, for asyncio. The lists are asynchronous iterators.

    Calls may run at the same time. A call that is cancelled closes its connection.
    """

    transport: AsyncTransport
    _session_type = AsyncSession

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float = 30,
        retries: int = 4,
        max_connections: int = 50,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        self.transport = AsyncTransport(
            base_url,
            api_key,
            timeout=timeout,
            retries=retries,
            max_connections=max_connections,
            http_client=http_client,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the pooled connections."""
        await self.transport.close()
