"""HTTP: one pool of connections, retries, and errors made into exceptions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import urllib3
from urllib3.util import Retry, Timeout

from contextapp_client.errors import BadAnswer, ConnectionFailed, error_of
from contextapp_client.payloads import encode

#: Answers that a later try may better. Rate limits and full queues say when, in `Retry-After`.
_PASSING = frozenset({429, 502, 503, 504})

#: Methods that may be sent twice without doing anything twice.
_SAFE = frozenset({"GET", "HEAD", "DELETE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back, with a status below 400."""

    status: int
    headers: Mapping[str, str]
    data: bytes

    def json(self) -> Any:
        """The body's value. Raises `BadAnswer`."""
        try:
            return json.loads(self.data)
        except ValueError:
            raise BadAnswer(f"status {self.status} with a body that is not JSON") from None


class Transport:
    """Calls of one server with one key. May be shared by threads."""

    def __init__(self, base_url: str, api_key: str, *, timeout: float, retries: int) -> None:
        self.base_url = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {api_key}", "Accept-Encoding": "gzip"}
        self._retry = Retry(
            total=retries,
            allowed_methods=_SAFE,
            status_forcelist=_PASSING,
            backoff_factor=0.2,
            backoff_max=10,
            backoff_jitter=0.1,
            retry_after_max=120,
            raise_on_status=False,
        )
        self._pool = urllib3.PoolManager(
            maxsize=16, timeout=Timeout(connect=min(timeout, 5.0), read=timeout), retries=self._retry
        )

    def call(
        self,
        method: str,
        *path: str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = False,
    ) -> Answer:
        """One call under /api/v1/. None in `query` is left out. `repeatable`: sending it again does no harm,
        though its method alone does not say so.

        Raises the errors of `errors.py`.
        """
        sent = {**self._headers, **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        try:
            response = self._pool.request(
                method,
                self._address(path, query),
                body=None if body is None else encode(body),
                headers=sent,
                retries=self._retry.new(allowed_methods=None) if repeatable else self._retry,
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise ConnectionFailed(f"{method} {self.base_url}: {error}") from error
        if response.status >= 400:
            raise error_of(response.status, response.data, response.headers)
        return Answer(status=response.status, headers=response.headers, data=response.data)

    def close(self) -> None:
        """Close the pooled connections."""
        self._pool.clear()

    def _address(self, path: tuple[str, ...], query: Mapping[str, object] | None) -> str:
        steps = "".join(f"{quote(step, safe='')}/" for step in path)
        given = {name: value for name, value in (query or {}).items() if value is not None}
        return f"{self.base_url}/api/v1/{steps}" + (f"?{urlencode(given)}" if given else "")
