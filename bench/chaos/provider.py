"""A provider behind the gateway: gives equal requests equal answers, and checks what it receives."""

from __future__ import annotations

import hashlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

import orjson


class Provider:
    """A server on a free port. `problems` lists what the gateway should not have forwarded."""

    def __init__(self) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.provider = self  # type: ignore[attr-defined]
        self._lock = Lock()
        self._sent: set[bytes] = set()
        self.calls, self.compacted = 0, 0
        self.problems: list[str] = []
        Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def expect(self, body: bytes) -> None:
        """Remember a request that an agent sends."""
        with self._lock:
            self._sent.add(hashlib.sha256(body).digest())

    def check(self, body: bytes) -> None:
        request = orjson.loads(body)
        is_unchanged = hashlib.sha256(body).digest() in self._sent
        with self._lock:
            self.calls += 1
            self.compacted += not is_unchanged
            if not is_unchanged and not request["metadata"]["user_id"].startswith("compact"):
                self.problems.append("a call in observe mode was changed")
            if not _is_paired(request["messages"]):
                self.problems.append("a prompt has a tool call without a result, or a result without a call")


def _is_paired(messages: list[dict[str, Any]]) -> bool:
    """Return whether each message answers exactly the tool calls of the one before."""
    calls: list[str] = []
    for message in messages:
        blocks = message["content"] if isinstance(message["content"], list) else []
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(calls):
            return False
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    return not calls


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return the model's message, which depends only on the last message of the request."""
    digest = hashlib.sha256(orjson.dumps(request["messages"][-1]["content"])).hexdigest()
    call = {"type": "tool_use", "id": f"toolu_{digest[:20]}", "name": "read_file", "input": {"path": digest}}
    return {
        "id": f"msg_{digest[:24]}",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [{"type": "text", "text": f"Answer {digest} é"}, call],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": len(request["messages"]) * 100, "output_tokens": 20},
    }


def events(message: dict[str, Any]) -> bytes:
    """Return a message as a stream of events."""
    words, call = message["content"]
    usage = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": message["usage"]}
    text = {"type": "text_delta", "text": words["text"]}
    arguments = {"type": "input_json_delta", "partial_json": orjson.dumps(call["input"]).decode()}
    parts = [
        {"type": "message_start", "message": {**message, "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {**words, "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": text},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {**call, "input": {}}},
        {"type": "content_block_delta", "index": 1, "delta": arguments},
        {"type": "content_block_stop", "index": 1},
        usage,
        {"type": "message_stop"},
    ]
    return b"".join(b"event: %s\ndata: %s\n\n" % (p["type"].encode(), orjson.dumps(p)) for p in parts)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: the gateway is killed during calls."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        provider: Provider = self.server.provider  # type: ignore[attr-defined]
        provider.check(body)
        request = orjson.loads(body)
        message = answer(request)
        is_stream = request.get("stream", False)
        data = events(message) if is_stream else orjson.dumps(message)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""
