"""HTTP: a connection pool, retries, and exceptions for error responses."""

from __future__ import annotations

import asyncio
import os
import random
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import httpx2

from contextapp_client.errors import (
    ConnectionFailed,
    UnexpectedResponse,
    error_from_response,
    seconds_until_retry,
)
from contextapp_client.payloads import encode_body, given
from contextapp_client.steps import LARGE, Pause, Request, Response, Step, Steps, Work

T = TypeVar("T")

#: Statuses that are retried, after `Retry-After` if the response has it.
_RETRIED_STATUSES = frozenset({429, 502, 503, 504})
#: Methods that are idempotent in this API.
_IDEMPOTENT = frozenset({"GET", "HEAD", "DELETE"})
#: Exceptions after which the server has not received the request.
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
#: Seconds before the first retry, at most before later ones, and at most for a `Retry-After`.
_FIRST_DELAY, _LAST_DELAY, _LAST_RETRY_AFTER = 0.2, 10.0, 120.0
#: Seconds for which an unused connection is kept. Longer than most calls of a model.
_KEEPALIVE = 120.0


class BaseTransport:
    """Requests to one server with one API key, as steps."""

    def __init__(
        self, base_url: str, api_key: str, *, timeout: float, retries: int, max_connections: int
    ) -> None:
        if not api_key:
            raise ValueError("`api_key` is empty. Is the environment variable of the key set?")
        if not api_key.isascii():
            raise ValueError("`api_key` is not a key. Is it the placeholder of an example?")
        if not (base_url or "").startswith(("http://", "https://")):
            raise ValueError(
                f"The URL must begin with `http://` or `https://`, not {base_url!r}. Is its environment "
                "variable set?"
            )
        self.base_url = base_url.rstrip("/").removesuffix("/api/v1")
        self._headers = {"Authorization": f"Bearer {api_key.strip()}", "Accept-Encoding": "gzip"}
        self._retries = retries
        self._timeout = httpx2.Timeout(timeout, connect=min(timeout, 5.0), pool=None)
        self._max_connections = max_connections

    def json(self, method: str, *path: str, **options: Any) -> Steps[Any]:
        """Send a request with the options of `call`, and return the parsed body of the response."""
        response = yield from self.call(method, *path, **options)
        return (yield from response.parsed())

    def call(
        self,
        method: str,
        *path: str,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = False,
    ) -> Steps[Response]:
        """Send a request to a path under `/api/v1/`.

        `body` is sent as JSON, `data` unchanged, as JSON if `headers` specify it. None values in `query` are
        omitted. Set `repeatable` if the request is safe to repeat even though its method is not idempotent.
        Raises the exceptions of `errors`.
        """
        content_type = {}
        if body is not None:
            data = yield from encode_body(body)
            content_type = {"Content-Type": "application/json"}
        elif data is not None:
            content_type = {"Content-Type": "application/octet-stream"}
        sent = {**self._headers, **content_type, **(headers or {})}
        request = Request(method=method, url=self._url(path, query), headers=sent, data=data)
        return (yield from self._attempts(request, repeatable=repeatable or method in _IDEMPOTENT))

    def _attempts(self, request: Request, *, repeatable: bool) -> Steps[Response]:
        """Send a request until there is a response that is not retried."""
        name = f"{request.method} {self.base_url}"
        was_lost = False  # whether the server may have carried out an attempt without a response
        for attempt in range(self._retries + 1):
            is_last = attempt == self._retries
            delay = min(_LAST_DELAY, _FIRST_DELAY * 2**attempt) * random.uniform(0.5, 1)  # noqa: S311
            try:
                response: Response = yield request
            except (httpx2.RequestError, httpx2.InvalidURL) as error:
                was_sent = not isinstance(error, _NOT_SENT)
                is_permanent = isinstance(error, httpx2.UnsupportedProtocol | httpx2.InvalidURL)
                if is_last or is_permanent or (was_sent and not repeatable):
                    raise ConnectionFailed(f"{name}: {str(error) or type(error).__name__}") from error
                was_lost = was_lost or was_sent
            else:
                if is_last or not repeatable or response.status not in _RETRIED_STATUSES:
                    break
                asked = seconds_until_retry(response.headers)
                if asked is not None:  # not earlier, and not at the same time as all other clients
                    delay = min(asked, _LAST_RETRY_AFTER) * random.uniform(1, 1.1)  # noqa: S311
            yield Pause(delay)
        if response.status == 404 and request.method == "DELETE" and was_lost:
            return Response(status=204, headers=response.headers, data=b"")
        if response.status >= 400:
            raise error_from_response(response.status, response.data, response.headers)
        if 300 <= response.status != 304:
            location = response.headers.get("Location")
            raise UnexpectedResponse(f"{name} is redirected to {location}: change `base_url`")
        return response

    def _url(self, path: tuple[str, ...], query: Mapping[str, object] | None) -> str:
        segments = "".join(f"{quote(segment, safe='')}/" for segment in path)
        parameters = given(**(query or {}))
        return f"{self.base_url}/api/v1/{segments}" + (f"?{urlencode(parameters)}" if parameters else "")

    def _arguments(self, request: Request) -> dict[str, Any]:
        """Return the arguments of `httpx2` for an attempt."""
        return {
            "method": request.method,
            "url": request.url,
            "headers": request.headers,
            "content": request.data,
            "timeout": self._timeout,
            "follow_redirects": False,
        }

    def _pool_options(self) -> dict[str, Any]:
        """Return the arguments of `httpx2` for a connection pool."""
        is_secure = self.base_url.startswith("https:")
        return {
            # Loading the certificates of the authorities takes longer than many requests.
            "verify": ssl.create_default_context() if is_secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            "limits": httpx2.Limits(
                max_connections=self._max_connections,
                max_keepalive_connections=self._max_connections,
                keepalive_expiry=_KEEPALIVE,
            ),
            "trust_env": False,
        }


class SyncTransport(BaseTransport):
    """Carries out steps. Thread-safe. May be used in forks of the process."""

    def __init__(self, *server: str, http_client: httpx2.Client | None, **options: Any) -> None:
        super().__init__(*server, **options)
        self._given = http_client
        self._opened: tuple[int, httpx2.Client] | None = None

    def run(self, steps: Steps[T]) -> T:
        """Carry out the steps of a call, and return its result."""
        try:
            step = next(steps)
            while True:
                try:
                    result = self._result(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            returned: T = end.value
            return returned
        finally:
            steps.close()

    def _result(self, step: Step) -> Any:
        match step:
            case Request():
                return _response(self._pool().request(**self._arguments(step)))
            case Pause(seconds):
                return time.sleep(seconds) if seconds else None
            case Work(function):
                return function()

    def _pool(self) -> httpx2.Client:
        """Return the connection pool of this process.

        A fork shares the sockets of its parent, so each would read responses to requests of the other.
        """
        if self._given is not None:
            return self._given
        process = os.getpid()
        if self._opened is None or self._opened[0] != process:
            self._opened = process, httpx2.Client(**self._pool_options())
        return self._opened[1]

    def close(self) -> None:
        """Close the pooled connections."""
        opened, self._opened = self._opened, None
        if opened is not None and opened[0] == os.getpid():
            opened[1].close()


class AsyncTransport(BaseTransport):
    """Carries out steps without blocking the event loop. May be used in several event loops in succession."""

    def __init__(self, *server: str, http_client: httpx2.AsyncClient | None, **options: Any) -> None:
        super().__init__(*server, **options)
        self._given = http_client
        self._opened: tuple[object, httpx2.AsyncClient] | None = None

    async def run(self, steps: Steps[T]) -> T:
        """Carry out the steps of a call, and return its result."""
        try:
            step = next(steps)
            while True:
                try:
                    result = await self._result(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            returned: T = end.value
            return returned
        finally:
            steps.close()  # so that a call that was cancelled has ended before its caller continues

    def _arguments(self, request: Request) -> dict[str, Any]:
        arguments = super()._arguments(request)
        if request.data is not None and len(request.data) > LARGE:
            # If it was sent at once, copying it to the socket would block the event loop.
            length = {"Content-Length": str(len(request.data))}
            arguments |= {"content": _parts(request.data), "headers": {**request.headers, **length}}
        return arguments

    async def _result(self, step: Step) -> Any:
        match step:
            case Request():
                return _response(await self._pool().request(**self._arguments(step)))
            case Pause(seconds):
                return await asyncio.sleep(seconds)
            case Work(function):
                return await asyncio.to_thread(function)

    def _pool(self) -> httpx2.AsyncClient:
        """Return the connection pool of this process and event loop, in which its connections live."""
        if self._given is not None:
            return self._given
        place = _place()
        if self._opened is None or self._opened[0] != place:
            self._opened = place, httpx2.AsyncClient(**self._pool_options())
        return self._opened[1]

    async def close(self) -> None:
        """Close the pooled connections. Those of another event loop have ended with it."""
        opened, self._opened = self._opened, None
        if opened is not None and opened[0] == _place():
            await opened[1].aclose()


def _place() -> tuple[int, asyncio.AbstractEventLoop]:
    return os.getpid(), asyncio.get_running_loop()


async def _parts(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), LARGE):
        yield data[start : start + LARGE]


def _response(received: httpx2.Response) -> Response:
    return Response(status=received.status_code, headers=received.headers, data=received.content)
