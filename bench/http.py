"""The HTTP client of the benchmarks: one kept-alive connection, with timings."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable


class Http:
    """One kept-alive connection with minimal overhead, because the client shares the CPU with the server."""

    def __init__(self, port: int, key: str) -> None:
        self.port = port
        self._connect()
        self.head = f"Host: localhost\r\nAuthorization: Bearer {key}\r\n"
        self.buffer = bytearray()
        #: Milliseconds between the last byte of the previous request and the first bytes of its response.
        self.first_byte = 0.0

    def _connect(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def request(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        self.socket.sendall(
            f"{method} {path} HTTP/1.1\r\n{self.head}Content-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        sent = time.perf_counter()
        self._read()
        self.first_byte = (time.perf_counter() - sent) * 1000
        while (end := self.buffer.find(b"\r\n\r\n")) < 0:
            self._read()
        head = bytes(self.buffer[:end]).lower()
        del self.buffer[: end + 4]
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        while len(self.buffer) < length:
            self._read()
        answer = bytes(self.buffer[:length])
        del self.buffer[:length]
        if b"\r\nconnection: close" in head:
            self.socket.close()
            self._connect()
        return int(head.split(b" ", 2)[1]), answer

    def _read(self) -> None:
        data = self.socket.recv(262_144)
        if not data:
            raise ConnectionError("the server closed the connection")
        self.buffer += data


def timed(call: Callable[[], tuple[int, bytes]], status: int) -> float:
    return timed_answer(call, status)[0]


def timed_answer(call: Callable[[], tuple[int, bytes]], status: int) -> tuple[float, bytes]:
    """Return the milliseconds of a request and its response."""
    started = time.perf_counter()
    got, answer = call()
    took = (time.perf_counter() - started) * 1000
    if got != status:
        raise SystemExit(f"HTTP {got}: {answer[:300]!r}")
    return took, answer


def quantiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        name: round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 2)
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    }
