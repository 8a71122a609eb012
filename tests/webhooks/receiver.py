"""A webhook receiver: a real HTTP server that records requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class Receiver:
    url: str
    statuses: list[int] = field(default_factory=list)  #: statuses of the responses, in order, then 200
    heard: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server_state.heard.append((dict(self.headers), body))
            self.send_response(server_state.statuses.pop(0) if server_state.statuses else 200)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server_state = Receiver(url=f"http://127.0.0.1:{server.server_address[1]}/hook?x=1")
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server_state
        server.shutdown()
