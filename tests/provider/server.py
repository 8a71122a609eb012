"""A local fake of Anthropic's Messages API with scripted behavior.

    with FakeProvider(rate_limited(), summary(delay=3)) as provider:
        AnthropicSummarizer("key", base_url=provider.url).summarize(...)
        assert len(provider.requests) == 2

Behaviors are used in order; further requests get a valid summary. Other processes can use the server, too.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.provider.behaviours import Answer, Behaviour, error, summary

JSON = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A received request. `at` is `time.monotonic()`."""

    path: str
    headers: dict[str, str]
    body: JSON
    at: float


class FakeProvider:
    """The server. `requests` are the received requests, `otherwise` is the behavior after the script."""

    def __init__(self, *behaviours: Behaviour, otherwise: Behaviour | None = None) -> None:
        self.requests: list[Recorded] = []
        self.otherwise = otherwise or summary()
        self._script = deque(behaviours)
        self._stopped = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"provider": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()

    def script(self, *behaviours: Behaviour) -> None:
        """Add behaviors for the next requests."""
        self._script.extend(behaviours)

    def answer(self, request: Recorded) -> Answer:
        self.requests.append(request)
        wrong = _fault(request)
        if wrong:
            return wrong(request.body)
        try:
            behaviour = self._script.popleft()
        except IndexError:
            behaviour = self.otherwise
        return behaviour(request.body)

    def wait(self, seconds: float, until: threading.Event | None = None) -> None:
        """Wait for an answer's delay: until its event is set, at most until the server stops."""
        (until or self._stopped).wait(seconds)


def _fault(request: Recorded) -> Behaviour | None:
    """Return the reason why the API would reject the request."""
    body = request.body
    if not (request.headers.get("authorization") or request.headers.get("x-api-key")):
        return error(401, "authentication_error")
    if request.path != "/v1/messages":
        return error(404, "not_found_error")
    sound = (
        isinstance(body.get("model"), str)
        and isinstance(body.get("max_tokens"), int)
        and [message["role"] for message in body.get("messages", [])] == ["user"]
        and body["messages"][0]["content"].strip()
        and _is_closed(body["output_config"]["format"]["schema"])
    )
    return None if sound else error(400, "invalid_request_error")


def _is_closed(schema: Any) -> bool:
    """Return whether every object lists all of its fields, as structured outputs require."""
    if isinstance(schema, list):
        return all(map(_is_closed, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            return False
        if set(schema["required"]) != set(schema["properties"]):
            return False
    return all(map(_is_closed, schema.values()))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    provider: FakeProvider

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Recorded(path=self.path, headers=headers, body=json.loads(data), at=time.monotonic())
        answer = self.provider.answer(request)
        self.provider.wait(answer.delay, answer.until)
        try:
            self._send(answer)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client has disconnected

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in {"content-type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        body = answer.body[: len(answer.body) // 2] if answer.cut else answer.body
        for part in (body[at : at + 1] for at in range(len(body))) if answer.pause else [body]:
            if answer.pause:
                self.provider.wait(answer.pause)
            self.wfile.write(part)
        self.close_connection = answer.cut

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
