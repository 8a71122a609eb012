"""Receive the bodies of requests on the event loop, within limits of time, size and number."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import IO, Any

Environ = MutableMapping[str, Any]

#: A body must arrive within this many seconds, plus one for each `BODY_RATE` bytes.
BODY_SECONDS, BODY_RATE = 20.0, 50_000
#: Maximum number of bodies that a process receives concurrently. The next one aborts the oldest.
MAX_RECEIVING = 400
#: Larger bodies, and those of unknown length, are stored in temporary files (bytes).
LARGE_BYTES = 16 * 1024 * 1024
#: Bodies over `SMALL_BYTES` are stored in temporary files too if those in memory would exceed `MEMORY_BYTES`.
SMALL_BYTES = 256 * 1024
MEMORY_BYTES = 64 * 1024 * 1024


class BodyError(Exception):
    """The body was not received. The response has this status, code and message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Bodies:
    """Receives the bodies of one process.

    `limit` is the size of the largest body in bytes. The rest of a larger one is received and discarded, so
    that the client sees the response; beyond four times the limit the connection is closed.
    """

    def __init__(
        self,
        *,
        limit: int,
        seconds: float = BODY_SECONDS,
        most: int = MAX_RECEIVING,
        memory: int = MEMORY_BYTES,
    ) -> None:
        self.limit, self.seconds, self.most, self.memory = limit, seconds, most, memory
        self.receiving: dict[asyncio.Timeout, None] = {}

    @contextmanager
    def memory_for(self, environ: Environ) -> Iterator[bool]:
        """Reserve memory for the body within the block, if there is enough. Small bodies need none."""
        length = _declared(environ) or 0
        reserved = length if length > SMALL_BYTES else 0
        if length > LARGE_BYTES or reserved > self.memory:
            yield False
            return
        self.memory -= reserved
        try:
            yield True
        finally:
            self.memory += reserved

    async def receive(self, environ: Environ, proto: Any, *, in_memory: bool) -> IO[bytes]:
        """Return the body, and set its length. Raises `BodyError`, or `ProtocolClosed`."""
        length = _declared(environ)
        if "CONTENT_LENGTH" not in environ and "HTTP_TRANSFER_ENCODING" not in environ:
            return io.BytesIO()
        if length == 0 or (length is not None and length > 4 * self.limit):
            return io.BytesIO()  # the application rejects the latter by its length
        in_memory = in_memory and length is not None
        deadline = asyncio.timeout(self.seconds + (length or 0) / BODY_RATE * in_memory)
        try:
            async with deadline:
                self._begin(deadline)
                if in_memory:
                    body: IO[bytes] = io.BytesIO(await proto())
                else:
                    body, length = await self._receive_parts(proto, deadline, length)
        except TimeoutError:
            raise BodyError(408, "request_timeout", "The body was not received in time.") from None
        finally:
            self.receiving.pop(deadline, None)
        environ["CONTENT_LENGTH"] = str(length)
        environ.pop("HTTP_TRANSFER_ENCODING", None)
        return body

    def _begin(self, deadline: asyncio.Timeout) -> None:
        """Register a body that is being received. If there are too many, abort the oldest."""
        if len(self.receiving) >= self.most:
            oldest = next(iter(self.receiving))
            del self.receiving[oldest]
            oldest.reschedule(0)
        self.receiving[deadline] = None

    async def _receive_parts(
        self, proto: Any, deadline: asyncio.Timeout, declared: int | None
    ) -> tuple[IO[bytes], int]:
        """Return the body, without the part over the limit, and its length with that part."""
        begun = asyncio.get_running_loop().time()
        body, size, ends = SpooledTemporaryFile(SMALL_BYTES), 0, 0  # noqa: SIM115 (closed by the application)
        async for chunk in proto:
            ends += not chunk
            size += len(chunk)
            if size <= self.limit:
                body.write(chunk)
            elif size > 4 * self.limit:
                return body, size
            if deadline in self.receiving and not deadline.expired():
                deadline.reschedule(begun + self.seconds + size / BODY_RATE)
        # The body ends with an empty chunk. If it is truncated, granian adds another one instead of an error.
        if ends > 1 or declared not in (None, size):
            raise BodyError(400, "bad_json", "The connection closed before the whole body was received.")
        body.seek(0)
        return body, size


def _declared(environ: Environ) -> int | None:
    """Return the length in the request's headers, or None."""
    declared = environ.get("CONTENT_LENGTH", "")
    return int(declared) if declared.isdigit() else None
