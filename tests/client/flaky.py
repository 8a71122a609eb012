"""A server that fails on demand."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: The connection is closed after the request was read, without an answer.
DROPPED = object()
#: The request is read, and the connection stays open without an answer until the server is stopped.
HELD = object()


@dataclass(frozen=True, kw_only=True)
class Canned:
    """A response. `body` is JSON, or bytes that are sent unchanged, without the last `cut` bytes."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    cut: int = 0


def refusal(status: int, type: str, code: str, **headers: str) -> Canned:
    error = {"type": type, "code": code, "message": "no", "param": None}
    return Canned(
        status=status, body={"error": error}, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


class FlakyServer:
    """Returns `answers` in order and repeats the last one.

    `seen` are the requests, and `clients` the ports of the connections that sent them.
    """

    def __init__(self, answers: Iterable[object]) -> None:
        self.answers = list(answers)
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.clients: list[int] = []
        self.released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"flaky": self}))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def next(self) -> object:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    flaky: FlakyServer

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.flaky.seen.append((self.command, self.path, dict(self.headers), body))
        self.flaky.clients.append(self.client_address[1])
        answer = self.flaky.next()
        if answer is HELD:
            self.flaky.released.wait()
        if not isinstance(answer, Canned):
            self.close_connection = True
            return
        data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) - answer.cut])
        self.close_connection = self.close_connection or answer.cut > 0

    do_GET = do_POST = do_PATCH = do_DELETE = _handle  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
