"""Small helpers for ASGI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Disconnected(Exception):
    """The agent closed the connection."""


class TooLarge(Exception):
    """The request body exceeds the limit."""


async def body_read(receive: Receive, *, most: int) -> bytes:
    """Return the request body. Raises `Disconnected` or `TooLarge`."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise TooLarge
        if not message.get("more_body", False):
            return b"".join(parts)


async def disconnected(receive: Receive) -> None:
    """Return when the agent has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def respond(
    send: Send,
    status: int,
    body: bytes,
    headers: Sequence[tuple[bytes, bytes]] = (),
    *,
    type: bytes = b"application/json",
) -> None:
    """Send a complete response."""
    given = [(b"content-type", type), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": given})
    await send({"type": "http.response.body", "body": body})
