"""The entry: one server, one key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from types import TracebackType
from typing import Literal, Self, cast
from uuid import uuid4

from contextapp_client import types
from contextapp_client.paging import pages
from contextapp_client.session import Session
from contextapp_client.transport import Transport


class ContextApp:
    """A contextapp server as one API key sees it. May be shared by threads.

    `timeout` is in seconds, for each try. `retries` counts the tries after the first one, which are made
    where a call may be repeated without harm: after lost connections, rate limits and full queues, at the
    time that the server names or at growing distances.
    """

    def __init__(self, base_url: str, api_key: str, *, timeout: float = 30, retries: int = 4) -> None:
        self._transport = Transport(base_url, api_key, timeout=timeout, retries=retries)

    @property
    def base_url(self) -> str:
        return self._transport.base_url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the pooled connections."""
        self._transport.close()

    def session(self, id: str | None = None, *, create: types.NewSession | None = None) -> Session:
        """The session of that id. With `create`, or without an id, it is made where there is none yet; one
        that is there stays as it is."""
        if create is None and id is not None:
            return Session(self._transport, id)
        name = id or uuid4().hex
        body = {**(create or {}), "id": name, "if_exists": "return"}
        self._transport.call("POST", "sessions", body=body, repeatable=True)
        return Session(self._transport, name)

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
    ) -> Iterator[types.SessionInfo]:
        """All sessions that pass the filters, those last active first. `metadata` is a key and its value;
        times need their zone; `q` is part of the title or id."""
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
        return pages(self._transport, "sessions", query=query)

    def tools(self, format: types.Format = "anthropic") -> list[types.JsonObject]:
        """contextapp's tools for the agent's model, in the provider's shape: hand them over beside your own
        and run their calls by `Session.call_tool`."""
        answer = self._transport.call("GET", "tools", query={"format": format})
        return cast(list[types.JsonObject], answer.json()["tools"])

    def usage(
        self,
        *,
        group_by: Sequence[Literal["day", "model", "agent", "tag"]] = (),
        since: date | None = None,
        until: date | None = None,
        time_zone: str | None = None,
    ) -> types.Usage:
        """Tokens and cost (micro-dollars) of the project, both days included; else of 30 days by day."""
        query = {
            "group_by": ",".join(group_by) or None,
            "from": since and since.isoformat(),
            "to": until and until.isoformat(),
            "time_zone": time_zone,
        }
        return cast(types.Usage, self._transport.call("GET", "usage", query=query).json())

    def validate(
        self, params: Mapping[str, object], *, format: types.Format = "anthropic", model: str | None = None
    ) -> list[types.Violation]:
        """The rules of the provider that a prompt breaks, none for a valid one. `params` are `messages`, and
        `system` and `tools` where there are any. Nothing is stored."""
        body = {**params, "format": format, **({"model": model} if model else {})}
        answer = self._transport.call("POST", "prompts", "validate", body=body, repeatable=True)
        return cast(list[types.Violation], answer.json()["violations"])
