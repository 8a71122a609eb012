"""Responses that all viewers of a session share, so that a session watched by many is rendered once.

An open page requests what has changed every few seconds. All pages that show the same state get the same
answer, apart from the CSRF token of their forms.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from django.http import HttpRequest
from django.middleware.csrf import get_token

Value = TypeVar("Value")

#: Maximum number of responses that a process keeps, and how long it keeps them, in seconds.
_MOST, _SECONDS = 40, 10.0

#: The CSRF token in a shared response, which no message can contain.
CSRF_PLACEHOLDER = f"csrf-{secrets.token_hex(16)}"


def with_csrf_token(request: HttpRequest, html: str) -> str:
    """Return shared HTML with the viewer's CSRF token."""
    return html.replace(CSRF_PLACEHOLDER, get_token(request))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry(Generic[Value]):
    made_at: float
    value: Future[Value]


class SharedResponses(Generic[Value]):
    """The newest responses of a process by key. Concurrent requests wait for the first of them."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, _Entry[Value]] = OrderedDict()
        self._lock = Lock()

    def fetch(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the response of a key, made at most `_SECONDS` ago. Raises what `make` raises."""
        with self._lock:
            known = self._entries.get(key)
            is_known = known is not None and time.monotonic() - known.made_at < _SECONDS
            if known is None or not is_known:
                known = self._entries[key] = _Entry(made_at=time.monotonic(), value=Future())
                while len(self._entries) > _MOST:
                    self._entries.popitem(last=False)
        if not is_known:
            try:
                known.value.set_result(make())
            except BaseException as error:
                with self._lock:
                    self._entries.pop(key, None)
                known.value.set_exception(error)
        return known.value.result()
