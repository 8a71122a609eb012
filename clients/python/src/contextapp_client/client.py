"""The client: access to one server with one API key."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from types import TracebackType
from typing import Literal, Self, cast
from uuid import uuid4

from contextapp_client import payloads, types
from contextapp_client.paging import pages
from contextapp_client.session import Session
from contextapp_client.transport import Transport

#: Seconds before the first and, at most, before later requests for the state of an import.
_FIRST_POLL, _LAST_POLL = 0.25, 4.0


class ContextApp:
    """A client of a contextapp server. Thread-safe.

    `base_url` is the URL of the server, with or without `/api/v1`. `timeout` is in seconds and applies to
    each attempt. `retries` is the maximum number of retries. Requests that are safe to repeat are retried
    after lost connections, rate limits and temporary server errors, with exponential backoff or after the
    time given in `Retry-After`.
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
        """Return the session with this id.

        With `create`, or without an id, the session is created if it does not exist. An existing session is
        not changed.
        """
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
        return pages(self._transport, "sessions", query=query)

    def search(self, q: str) -> Iterator[types.SearchResult]:
        """Iterate over the 200 best matches for `q` in the messages of all sessions."""
        return pages(self._transport, "search", query={"q": q})

    def tools(self, format: types.Format = "anthropic") -> list[types.JsonObject]:
        """Return the definitions of contextapp's tools for the agent's model.

        Add them to your own tools, and run the model's calls to them with `Session.call_tool`.
        """
        response = self._transport.call("GET", "tools", query={"format": format})
        return cast(list[types.JsonObject], response.json()["tools"])

    def usage(
        self,
        *,
        group_by: Sequence[Literal["day", "model", "agent", "tag"]] = (),
        since: date | None = None,
        until: date | None = None,
        time_zone: str | None = None,
    ) -> types.Usage:
        """Return tokens and cost (in micro-dollars) of the project.

        `since` and `until` are inclusive. Defaults to the last 30 days, grouped by day.
        """
        query = {
            "group_by": ",".join(group_by) or None,
            "from": since and since.isoformat(),
            "to": until and until.isoformat(),
            "time_zone": time_zone,
        }
        return cast(types.Usage, self._transport.call("GET", "usage", query=query).json())

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
    ) -> types.CompactedPrompt:
        """Compact messages that you keep, without a session. Nothing is stored, and no model is called.

        `params` contains `messages` and optionally `system` and `tools`, or `input` and `instructions` of
        OpenAI's Responses API. `budget` is in input tokens and defaults to the model's. Messages below the
        policy's hard trigger stay unchanged, unless `force`. `window` first removes the oldest messages by
        number.
        """
        fields = {
            "budget": {"input_tokens": budget} if budget is not None else None,
            "model": model,
            "policy": policy,
            "window": window,
            "format": format,
        }
        body = {
            **payloads.prompt_fields(params),
            **{name: value for name, value in fields.items() if value is not None},
        }
        body["force"] = force
        response = self._transport.call("POST", "prompts", "compact", body=body, repeatable=True)
        return cast(types.CompactedPrompt, response.json())

    def validate(
        self, params: Mapping[str, object], *, format: types.Format = "anthropic", model: str | None = None
    ) -> list[types.Violation]:
        """Return the provider rules that a prompt violates, an empty list if it is valid.

        `params` are as in `compact`. Nothing is stored.
        """
        body = {**payloads.prompt_fields(params), "format": format, **({"model": model} if model else {})}
        response = self._transport.call("POST", "prompts", "validate", body=body, repeatable=True)
        return cast(list[types.Violation], response.json()["violations"])

    def import_log(
        self, data: bytes, *, name: str, format: str | None = None, wait: bool = True
    ) -> types.Import:
        """Import an uncompressed log of an agent. Importing it again adds only what is new.

        `name` is its file name; sessions whose log contains no id are named after it. With `wait`, return
        when the import has ended. Otherwise, pass its `id` to `import_get`. Requires the scope `read` too.
        """
        query = {"name": name, "format": format}
        response = self._transport.call("POST", "imports", query=query, data=data, repeatable=True)
        found = cast(types.Import, response.json())
        pause = _FIRST_POLL
        while wait and found["state"] in ("pending", "running"):
            time.sleep(pause)
            pause = min(2 * pause, _LAST_POLL)
            found = self.import_get(found["id"])
        return found

    def import_get(self, id: str) -> types.Import:
        """Return the state and progress of an import."""
        return cast(types.Import, self._transport.call("GET", "imports", id).json())

    def import_cancel(self, id: str) -> types.Import:
        """End an import. Sessions that were imported before stay."""
        body = {"state": "cancelled"}
        return cast(types.Import, self._transport.call("PATCH", "imports", id, body=body).json())
