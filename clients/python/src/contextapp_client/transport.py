"""HTTP: a connection pool, retries, and exceptions for error responses."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import urllib3
from urllib3.util import Retry, Timeout

from contextapp_client.errors import ConnectionFailed, UnexpectedResponse, error_from_response
from contextapp_client.payloads import encode

#: Statuses that are retried, after `Retry-After` if the response has it.
_RETRIED_STATUSES = frozenset({429, 502, 503, 504})

#: Methods that are idempotent in this API.
_IDEMPOTENT = frozenset({"GET", "HEAD", "DELETE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A response with a status below 400."""

    status: int
    headers: Mapping[str, str]
    data: bytes

    def json(self) -> Any:
        """Parse the body. Raises `UnexpectedResponse`."""
        try:
            return json.loads(self.data)
        except ValueError:
            raise UnexpectedResponse(f"the response with status {self.status} is not JSON") from None


class Transport:
    """Requests to one server with one API key. Thread-safe. May be used in forks of the process."""

    def __init__(self, base_url: str, api_key: str, *, timeout: float, retries: int) -> None:
        if not api_key:
            raise ValueError("`api_key` is empty. Is the environment variable of the key set?")
        self.base_url = base_url.rstrip("/").removesuffix("/api/v1")
        self._headers = {"Authorization": f"Bearer {api_key.strip()}", "Accept-Encoding": "gzip"}
        self._retry = Retry(
            total=retries,
            allowed_methods=_IDEMPOTENT,
            status_forcelist=_RETRIED_STATUSES,
            backoff_factor=0.2,
            backoff_max=10,
            backoff_jitter=0.1,
            retry_after_max=120,
            raise_on_status=False,
        )
        self._timeout = Timeout(connect=min(timeout, 5.0), read=timeout)
        self._open_pool()

    def call(
        self,
        method: str,
        *path: str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = False,
    ) -> Response:
        """Send a request to a path under `/api/v1/`.

        `body` is sent as JSON, `data` unchanged. None values in `query` are omitted. Set `repeatable` if the
        request is safe to repeat even though its method is not idempotent. Raises the exceptions of `errors`.
        """
        sent = {**self._headers, **(headers or {})}
        if body is not None:
            sent["Content-Type"], data = "application/json", encode(body)
        elif data is not None:
            sent["Content-Type"] = "application/octet-stream"
        try:
            response = self._own_pool().request(
                method,
                self._url(path, query),
                body=data,
                headers=sent,
                retries=self._retry.new(allowed_methods=None) if repeatable else self._retry,
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise ConnectionFailed(f"{method} {self.base_url}: {error}") from error
        if response.status == 404 and method == "DELETE" and _is_repeated(response):
            return Response(status=204, headers=response.headers, data=b"")
        if response.status >= 400:
            raise error_from_response(response.status, response.data, response.headers)
        if 300 <= response.status != 304:
            location = response.headers.get("Location")
            raise UnexpectedResponse(
                f"{method} {self.base_url} is redirected to {location}: change `base_url`"
            )
        return Response(status=response.status, headers=response.headers, data=response.data)

    def close(self) -> None:
        """Close the pooled connections."""
        self._own_pool().clear()

    def _open_pool(self) -> None:
        self._pool = urllib3.PoolManager(maxsize=16, timeout=self._timeout, retries=self._retry)
        self._process = os.getpid()

    def _own_pool(self) -> urllib3.PoolManager:
        """Return the pool of this process.

        A fork shares the sockets of its parent, so each would read responses to requests of the other.
        """
        if self._process != os.getpid():
            self._open_pool()
        return self._pool

    def _url(self, path: tuple[str, ...], query: Mapping[str, object] | None) -> str:
        segments = "".join(f"{quote(segment, safe='')}/" for segment in path)
        given = {name: value for name, value in (query or {}).items() if value is not None}
        return f"{self.base_url}/api/v1/{segments}" + (f"?{urlencode(given)}" if given else "")


def _is_repeated(response: urllib3.BaseHTTPResponse) -> bool:
    """Return whether an earlier attempt was sent whose response was lost."""
    return response.retries is not None and any(each.error for each in response.retries.history)
