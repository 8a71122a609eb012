"""Small helpers for ASGI."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


#: Seconds for receiving the rest of a request that is refused.
_DISCARD_SECONDS = 20.0


class Disconnected(Exception):
    """The agent closed the connection."""


class Refused(Exception):
    """A request that the gateway does not forward."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


class TooLarge(Exception):
    """The request body exceeds the limit."""


class Body:
    """The body of a request, which can be read once."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._is_received = False

    async def read(self, *, most: int) -> bytes:
        """Return the body. Raises `Disconnected` or `TooLarge`."""
        parts: list[bytes] = []
        size = 0
        while not self._is_received:
            parts.append(await self._next())
            size += len(parts[-1])
            if size > most:
                raise TooLarge
        return b"".join(parts)

    async def discard(self, *, most: int) -> None:
        """Receive the rest, up to a number of bytes: many clients read the response only afterwards."""
        with suppress(Disconnected, TimeoutError):
            async with asyncio.timeout(_DISCARD_SECONDS):
                while not self._is_received and most > 0:
                    most -= len(await self._next())

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        self._is_received = not message.get("more_body", False)
        part: bytes = message.get("body", b"")
        return part


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


def header_text(text: str) -> bytes:
    """Return a text as a header value, percent-encoded where necessary."""
    return quote(text, safe="/:@._-~ ").encode()
