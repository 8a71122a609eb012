"""The sessions of an adapter that serves several conversations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from contextapp_client.adapters._history import Codec, compact
from contextapp_client.client import AppCalls, AsyncContextApp, ContextApp
from contextapp_client.errors import NotFound
from contextapp_client.session import AnySession
from contextapp_client.steps import Steps
from contextapp_client.types import NewSession

T = TypeVar("T")

#: Maximum number of sessions to remember as created.
_MAX_SESSIONS = 10_000


class Sessions:
    """The sessions of `app` by their ids. New ones are created with the settings `create`."""

    def __init__(self, app: ContextApp | AsyncContextApp, create: NewSession | None) -> None:
        self._app = app
        self._create: NewSession = create or {}
        self._opened: dict[str, AnySession] = {}

    def compact(self, session_id: str, items: Sequence[T], codec: Codec[T], **options: Any) -> Steps[list[T]]:
        """Call `_history.compact` with a session. If it was deleted, it is created again."""
        try:
            return (yield from compact(lambda: self._session(session_id), items, codec, **options))
        except NotFound:  # deleted since, for example by the project's retention
            self._opened.pop(session_id, None)
            return (yield from compact(lambda: self._session(session_id), items, codec, **options))

    def _session(self, session_id: str) -> Steps[AnySession]:
        if session_id not in self._opened:
            while len(self._opened) >= _MAX_SESSIONS:
                del self._opened[next(iter(self._opened))]
            self._opened[session_id] = yield from AppCalls.session(self._app, session_id, create=self._create)
        return self._opened[session_id]
