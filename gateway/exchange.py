"""Forward one request and stream the response back, and keep a copy of both for the recording."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx2

from gateway import upstream
from gateway.http import Receive, Send, disconnected, respond
from gateway.providers import Provider

#: Response headers with the provider's id of the request.
_REQUEST_IDS = ("request-id", "x-request-id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """A request to the provider. `extra` are headers that are added to the response.

    `target` is the path and query of `url` as the agent wrote them. With `only_public`, the request is not
    sent to private addresses.
    """

    provider: Provider
    method: str
    url: httpx2.URL
    target: bytes
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes
    only_public: bool = False
    extra: Sequence[tuple[bytes, bytes]] = ()


@dataclass(slots=True, kw_only=True)
class Copy:
    """The received part of the response. Times are in milliseconds since the exchange began."""

    status: int = 0
    type: str = ""
    encoding: str = ""
    parts: list[bytes] = field(default_factory=list)
    is_complete: bool = False
    first_token_ms: int | None = None
    total_ms: int | None = None
    request_id: str = ""

    @property
    def is_stream(self) -> bool:
        return self.type.startswith("text/event-stream")


class Cut(Exception):
    """The provider closed the connection in the middle of its response, so the gateway must do the same."""


async def exchange(http: upstream.Client, forward: Forward, receive: Receive, send: Send, copy: Copy) -> None:
    """Forward the request, and fill `copy` with the response.

    If the agent disconnects, the request to the provider is canceled. In this case, and if the provider cuts
    the connection, the copy is incomplete.
    """
    streaming = asyncio.create_task(_stream(http, forward, send, copy))
    watching = asyncio.create_task(disconnected(receive))
    try:
        await asyncio.wait({streaming, watching}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        # The connection also ends after a complete response, whose last step may still be running.
        if not copy.is_complete:
            streaming.cancel()
        watching.cancel()
        await asyncio.gather(streaming, watching, return_exceptions=True)


async def _stream(http: upstream.Client, forward: Forward, send: Send, copy: Copy) -> None:
    start = time.monotonic()
    try:
        response = await upstream.send(
            http,
            forward.method,
            forward.url,
            forward.headers,
            forward.body,
            target=forward.target,
            only_public=forward.only_public,
        )
    except (httpx2.TransportError, httpx2.InvalidURL) as error:
        await _unreachable(forward, send, copy, error)
        return
    try:
        headers = [*upstream.response_headers(response.headers.raw), *forward.extra]
        copy.status = response.status_code
        copy.type = response.headers.get("content-type", "")
        copy.encoding = response.headers.get("content-encoding", "")
        copy.request_id = next(filter(None, map(response.headers.get, _REQUEST_IDS)), "")[:150]
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        async for part in response.aiter_raw():
            if copy.first_token_ms is None and (b"delta" in part or not copy.is_stream):
                copy.first_token_ms = _since(start)
            copy.parts.append(part)
            await send({"type": "http.response.body", "body": part, "more_body": True})
        copy.is_complete, copy.total_ms = True, _since(start)
    finally:
        copy.total_ms = copy.total_ms or _since(start)
        await response.aclose()
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _unreachable(forward: Forward, send: Send, copy: Copy, error: Exception) -> None:
    """Respond with 502 if the provider cannot be reached. Clients retry, as after a failed connection."""
    copy.status = 502
    text = f"The gateway cannot reach {forward.url.host}: {type(error).__name__}."
    await respond(send, 502, forward.provider.error("api_error", text), [*forward.extra])


def _since(start: float) -> int:
    return round((time.monotonic() - start) * 1_000)
