"""The gateway in the tests' process, on a real server and port, and a plain HTTP client."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from granian.constants import Interfaces
from granian.log import LogLevels
from granian.server.embed import Server

from gateway.app import Gateway
from gateway.callers import Callers
from gateway.calls import Call
from gateway.compact import Compactor
from gateway.providers import PROVIDERS
from gateway.recording.record import call_record
from gateway.recording.recorder import Recorder
from gateway.recording.spool import Spool

#: Seconds to wait for operations that take milliseconds on an idle machine.
PATIENCE = 120


@dataclass(frozen=True, kw_only=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes


class Running:
    """A gateway that runs until the end of the block. `patience` is how long calls wait for edits.

    `recorder` are further options of the `Recorder`.
    """

    def __init__(
        self,
        *,
        upstream: str,
        spool: Path,
        write: Callable[[Call], None] = call_record,
        patience: float = PATIENCE,
        **recorder: Callable[[], None],
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._upstream, self._spool, self._patience = upstream, spool, patience
        self._write, self._recorder_options = write, recorder
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.recorder: Recorder
        self.app: Gateway

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/gateway"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._server.stop)
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        self.recorder = Recorder(Spool(self._spool), self._write, **self._recorder_options)
        self.app = Gateway(
            recorder=self.recorder,
            callers=Callers(),
            compactor=Compactor(patience=self._patience),
            upstreams=dict.fromkeys(PROVIDERS, self._upstream),
            most_bytes=2**26,
        )
        self._server = Server(
            self.app,
            port=self.port,
            interface=Interfaces.ASGI,
            websockets=False,
            backpressure=10_000,
            log_level=LogLevels.error,
        )
        serving = asyncio.create_task(self._server.serve())
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                await asyncio.sleep(0.01)
                continue
            writer.close()
            break
        self._ready.set()
        await serving

    def advance(self, seconds: float) -> None:
        """Advance the clock of the gateway's event loop."""
        now = self._loop.time
        setattr(self._loop, "time", lambda: now() + seconds)  # noqa: B010

    def settle(self) -> None:
        """Wait until all calls are recorded."""
        asyncio.run_coroutine_threadsafe(self.app.settle(), self._loop).result(PATIENCE)

    def wait_for_recorder(self) -> None:
        """Wait until the calls that have ended are recorded. A provider may call this while it answers."""
        asyncio.run_coroutine_threadsafe(self.recorder.settle(), self._loop).result(PATIENCE)

    def call(
        self,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        method: str = "POST",
    ) -> Response:
        """Send a request with exactly these headers, and Host and Content-Length."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.putrequest(method, f"/gateway{path}", skip_accept_encoding=True)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("content-length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        given = {name.lower(): value for name, value in response.getheaders()}
        data = response.read()
        connection.close()
        return Response(status=response.status, headers=given, body=data)
