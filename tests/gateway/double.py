"""A fake provider that sends exactly the given bytes, and records the requests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, kw_only=True)
class Received:
    """A received request. Header names are in lower case."""

    method: str
    path: str
    headers: Headers
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value.decode() for key, value in self.headers if key == name.encode()), None)


@dataclass(kw_only=True)
class Reply:
    """A response: its parts are sent one by one. With `cut`, the connection is closed instead of its end.

    Before each part but the first it waits for `go`, if there is one.
    """

    status: int = 200
    headers: Headers = field(default_factory=lambda: [(b"content-type", b"application/json")])
    parts: Sequence[bytes] = (b"{}",)
    cut: bool = False
    go: threading.Event | None = None
    sent: threading.Event = field(default_factory=threading.Event)


Behaviour = Callable[[Received], Reply]


class Provider:
    """The server, in a separate thread. `script` has the next replies; then `otherwise` answers."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.script: list[Reply | Behaviour] = []
        self.otherwise: Behaviour = lambda _: Reply()
        self.cancelled = threading.Event()  #: a client closed its connection before the end of the response
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(10)

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connection, "127.0.0.1", self.port, limit=2**26)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopping.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await _request(reader):
                self.received.append(request)
                scripted = self.script.pop(0) if self.script else self.otherwise
                reply = scripted if isinstance(scripted, Reply) else scripted(request)
                if not await self._answer(reply, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            self.cancelled.set()
        finally:
            writer.close()

    async def _answer(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Send a reply chunked, or with its own Content-Length. Returns whether to go on."""
        chunked = not any(name.lower() == b"content-length" for name, _ in reply.headers)
        lines = [b"HTTP/1.1 %d Whatever" % reply.status, *(b"%b: %b" % header for header in reply.headers)]
        if chunked:
            lines.append(b"transfer-encoding: chunked")
        writer.write(b"\r\n".join(lines) + b"\r\n\r\n")
        removed = asyncio.create_task(reader.read(1)) if reply.go else None
        for number, part in enumerate(reply.parts):
            if number and reply.go is not None and removed is not None:
                while not reply.go.is_set():
                    await asyncio.sleep(0.005)
                    if removed.done():
                        self.cancelled.set()
                        return False
            writer.write(b"%x\r\n%b\r\n" % (len(part), part) if chunked else part)
            await writer.drain()
            reply.sent.set()
        if reply.cut:
            return False
        if chunked:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        if removed is not None:
            removed.cancel()
            return False
        return True


async def _request(reader: asyncio.StreamReader) -> Received | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    first, *lines = head.strip().split(b"\r\n")
    pairs = [line.partition(b":") for line in lines]
    headers = [(name.strip().lower(), value.strip()) for name, _, value in pairs]
    length = int(dict(headers).get(b"content-length", b"0"))
    method, path, _ = first.decode().split(" ")
    return Received(method=method, path=path, headers=headers, body=await reader.readexactly(length))
