"""Forward one request and stream the response back, and keep a copy of both for the recording."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace

import httpx2

from gateway import upstream
from gateway.calls import Call
from gateway.encodings import decoded_or_empty
from gateway.http import Receive, Send, disconnected, respond
from gateway.providers import Provider
from sessions.services.reconcile.splice import Served

log = logging.getLogger(__name__)

#: The response header that reports what the gateway did with the request.
REPORT = b"x-contextapp"

#: Response headers with the provider's id of the request.
_REQUEST_IDS = ("request-id", "x-request-id")

#: Maximum size in bytes, encoded and decoded, of a rejection that is read before it is passed on.
_LONGEST_REJECTION = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """A request to the provider. `extra` are headers that are added to the response.

    `target` is the path and query of `url` as the agent wrote them. With `only_public`, the request is not
    sent to private addresses. With `repairs`, a body that the provider rejects because of contextapp's edits
    is sent once more in a form that it accepts.
    """

    provider: Provider
    method: str
    url: httpx2.URL
    target: bytes
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes
    only_public: bool = False
    repairs: bool = False
    extra: Sequence[tuple[bytes, bytes]] = ()


@dataclass(slots=True, kw_only=True)
class Copy:
    """The received part of the response. Times are in milliseconds since the exchange began.

    `parts` is empty if the response has more than `most_bytes`: then the call is not recorded.
    """

    most_bytes: int
    status: int = 0
    type: str = ""
    encoding: str = ""
    parts: list[bytes] = field(default_factory=list)
    size: int = 0
    is_complete: bool = False
    first_token_ms: int | None = None
    total_ms: int | None = None
    request_id: str = ""
    is_repaired: bool = False  #: the response is to a repaired request

    @property
    def is_stream(self) -> bool:
        return self.type.startswith("text/event-stream")

    def add(self, part: bytes) -> None:
        """Keep the next part of the response, unless it becomes too large."""
        self.size += len(part)
        if self.size <= self.most_bytes:
            self.parts.append(part)
        else:
            self.parts.clear()


class Cut(Exception):
    """A response ended early. The server logs this exception and closes the agent's connection too."""


def _is_not_cut(record: logging.LogRecord) -> bool:
    """Return whether a record of the server is about an exception other than `Cut`, whose cause is logged."""
    return not record.getMessage().rstrip().endswith(f"\n{Cut.__name__}:")


logging.getLogger("_granian.utils").addFilter(_is_not_cut)


async def exchange(http: upstream.Client, forward: Forward, receive: Receive, send: Send, copy: Copy) -> None:
    """Forward the request, and fill `copy` with the response.

    If the agent disconnects, the request to the provider is cancelled. In this case, and if the provider cuts
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
        error, _ = await asyncio.gather(streaming, watching, return_exceptions=True)
        if isinstance(error, Exception):
            log.error("The response from %s was not forwarded completely.", forward.url.host, exc_info=error)


def call_forwarded(call: Call, served: Served) -> Call:
    """Return the call with the prompt that is forwarded for it."""
    source = served.source
    return replace(
        call,
        forwarded_estimate=served.estimate,
        forwarded_from=(source.session_id.hex, source.compaction) if source is not None else None,
        is_repaired=served.is_repaired,
    )


def call_answered(call: Call, copy: Copy, *, is_passed: bool) -> Call:
    """Return the call with its response. `is_passed`: it was forwarded without edits, in compact mode."""
    return replace(
        call,
        status=copy.status,
        response_type=copy.type,
        response_encoding=copy.encoding,
        response=b"".join(copy.parts),
        is_complete=copy.is_complete,
        first_token_ms=copy.first_token_ms,
        total_ms=copy.total_ms,
        request_id=copy.request_id,
        has_other_prompt=is_passed,
        is_repaired=call.is_repaired or copy.is_repaired,
    )


async def _stream(http: upstream.Client, forward: Forward, send: Send, copy: Copy) -> None:
    start = time.monotonic()
    try:
        response, parts, forward = await _answer(http, forward, copy)
    except (httpx2.TransportError, httpx2.InvalidURL) as error:
        await _unreachable(forward, send, copy, error)
        return
    try:
        headers = [*upstream.response_headers(response.headers.raw), *forward.extra]
        copy.status = response.status_code
        copy.type = response.headers.get("content-type", "")
        copy.encoding = response.headers.get("content-encoding", "")
        copy.request_id = next(filter(None, map(response.headers.get, _REQUEST_IDS)), "")[:200]
        if not copy.is_stream:  # the server sends the headers with the first part: they can change until then
            parts = _chained(await anext(parts, b""), parts)
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        async for part in parts:
            if copy.first_token_ms is None and (forward.provider.content_mark in part or not copy.is_stream):
                copy.first_token_ms = _since(start)
            copy.add(part)
            await send({"type": "http.response.body", "body": part, "more_body": True})
        copy.is_complete = True
    except httpx2.TransportError as error:
        kind = type(error).__name__
        log.warning("%s ended its response early, after %d bytes: %s.", forward.url.host, copy.size, kind)
        if not copy.size and not copy.is_stream:
            await _unreachable(forward, send, copy, error)
        return
    finally:
        copy.total_ms = _since(start)
        await response.aclose()
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _answer(
    http: upstream.Client, forward: Forward, copy: Copy
) -> tuple[httpx2.Response, AsyncIterator[bytes], Forward]:
    """Send the request, and return the response, the parts of its body, and the request that it answers."""
    response = await _sent(http, forward)
    parts = response.aiter_raw()
    if response.status_code != 400 or not forward.repairs:
        return response, parts, forward
    body = b""
    try:
        async for part in parts:
            body += part
            if len(body) > _LONGEST_REJECTION:
                return response, _chained(body, parts), forward
        encoding = response.headers.get("content-encoding", "")
        rejection = decoded_or_empty(body, encoding, most=_LONGEST_REJECTION)
        accepted = forward.provider.accepted(forward.body, rejection)
    except BaseException:
        await response.aclose()
        raise
    if accepted is None or accepted == forward.body:
        return response, _chained(body, parts), forward
    await response.aclose()
    extra = [(name, value + b"; thinking=removed" * (name == REPORT)) for name, value in forward.extra]
    log.warning("%s rejected thinking blocks. The request was sent again without them.", forward.url.host)
    forward, copy.is_repaired = replace(forward, body=accepted, extra=extra), True
    response = await _sent(http, forward)
    return response, response.aiter_raw(), forward


async def _sent(http: upstream.Client, forward: Forward) -> httpx2.Response:
    return await upstream.send(
        http,
        forward.method,
        forward.url,
        forward.headers,
        forward.body,
        target=forward.target,
        only_public=forward.only_public,
    )


async def _chained(first: bytes, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for part in parts:
        yield part


async def _unreachable(forward: Forward, send: Send, copy: Copy, error: Exception) -> None:
    """Respond with 502 if the provider does not respond. Clients retry, as after a failed connection."""
    copy.status, copy.is_complete = 502, True
    host = forward.url.host
    if isinstance(error, httpx2.ConnectError):
        text = f"The gateway cannot connect to {host}: {error}."
    else:
        text = f"The gateway received no response from {host}: {type(error).__name__}."
    await respond(send, 502, forward.provider.error("api_error", text), [*forward.extra])


def _since(start: float) -> int:
    return round((time.monotonic() - start) * 1_000)
