"""An offline model server that plays a script: Anthropic Messages and OpenAI Chat Completions.

Validates tool calls and results like the real APIs, and reports usage with prompt caching: the part shared
with the previous prompt is read from the cache, the rest is written to it.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

#: Approximate characters per token in code and logs.
CHARACTERS = 3.3


@dataclass(frozen=True)
class Call:
    """A tool call of the model."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """A response of the model."""

    text: str
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True)
class Request:
    """A request to the model."""

    body: dict[str, Any]

    def handle(self, about: str) -> str | None:
        """Return the handle in the newest shortened output of a tool call that mentions `about`, or None."""
        calls: dict[str, str] = {}
        outputs: list[str] = []
        for id, text, is_call in _calls_and_outputs(self.body["messages"]):
            if is_call:
                calls[id] = text
            elif about in calls.get(id, ""):
                outputs.append(text)
        found = re.findall(r"handle (h_\w+)", "\n".join(outputs))
        return found[-1] if found else None


def _calls_and_outputs(messages: list[dict[str, Any]]) -> Iterator[tuple[str, str, bool]]:
    """Yield id, text and whether it is a call, of the tool calls and outputs in both formats."""
    for message in messages:
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            if block["type"] == "tool_use":
                yield block["id"], json.dumps(block["input"]), True
            elif block["type"] == "tool_result":
                yield block["tool_use_id"], str(block["content"]), False
        for call in message.get("tool_calls") or []:
            yield call["id"], call["function"]["arguments"], True
        if message["role"] == "tool":
            yield message["tool_call_id"], str(content), False


#: One response of the model: fixed, or computed from the request.
Step = Reply | Callable[[Request], Reply]


class ScriptedModel:
    """The server, on a free local port. Runs inside a `with` block."""

    def __init__(self, script: Iterable[Step]) -> None:
        self._script = iter(script)
        self._last = ""
        self._count = 0
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def messages(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a response of the Anthropic Messages API."""
        cached, fresh = self._meter(body)
        reply = self._next(body)
        content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}]
        for index, call in enumerate(reply.calls):
            id = f"toolu_{self._count:04}{index}"
            content.append({"type": "tool_use", "id": id, "name": call.name, "input": call.arguments})
        return {
            "id": f"msg_{self._count:04}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": "tool_use" if reply.calls else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": 3,
                "cache_read_input_tokens": cached,
                "cache_creation_input_tokens": fresh,
                "output_tokens": _tokens(json.dumps(content)),
            },
        }

    def completions(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a response of the OpenAI Chat Completions API."""
        cached, fresh = self._meter(body)
        reply = self._next(body)
        message: dict[str, Any] = {"role": "assistant", "content": reply.text}
        if reply.calls:
            message["tool_calls"] = [
                {
                    "id": f"call_{self._count:04}{index}",
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
                }
                for index, call in enumerate(reply.calls)
            ]
        finish = "tool_calls" if reply.calls else "stop"
        return {
            "id": f"chatcmpl-{self._count:04}",
            "object": "chat.completion",
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {
                "prompt_tokens": cached + fresh,
                "completion_tokens": _tokens(json.dumps(message)),
                "prompt_tokens_details": {"cached_tokens": cached},
            },
        }

    def _next(self, body: dict[str, Any]) -> Reply:
        step = next(self._script)
        self._count += 1
        return step if isinstance(step, Reply) else step(Request(body))

    def _meter(self, body: dict[str, Any]) -> tuple[int, int]:
        """Return the prompt tokens shared with the previous prompt, and the other prompt tokens."""
        parts = [body.get("tools", []), body.get("system", ""), *body["messages"]]
        text = "\n".join(json.dumps(part, ensure_ascii=False) for part in parts)
        shared = _tokens(text[: _shared(self._last, text)])
        self._last = text
        return shared, _tokens(text) - shared


def _tokens(text: str) -> int:
    return round(len(text) / CHARACTERS)


def _shared(one: str, other: str) -> int:
    """Return the length of the common prefix."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def pairing_error(messages: list[dict[str, Any]]) -> str | None:
    """Return why a real API would reject these messages because tool calls and results do not match."""
    pending: set[str] = set()
    for index, message in enumerate(messages):
        blocks = message["content"] if isinstance(message.get("content"), list) else []
        answered = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        if message["role"] == "tool":
            answered = {message["tool_call_id"]}
        if answered - pending:
            return f"messages.{index}: result without its call: {sorted(answered - pending)}"
        pending -= answered
        if pending and message["role"] != "tool":
            return f"messages.{index}: calls without a result: {sorted(pending)}"
        pending |= {block["id"] for block in blocks if block["type"] == "tool_use"}
        pending |= {call["id"] for call in message.get("tool_calls") or []}
    return f"calls without a result: {sorted(pending)}" if pending else None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: ScriptedModel

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        endpoints = {"/v1/messages": self.model.messages, "/v1/chat/completions": self.model.completions}
        endpoint = endpoints.get(self.path)
        if endpoint is None:
            return self._send(404, _error("not_found_error", f"no such URL: {self.path}"))
        if error := pairing_error(body["messages"]):
            return self._send(400, _error("invalid_request_error", error))
        try:
            return self._send(200, endpoint(body))
        except StopIteration:
            return self._send(400, _error("invalid_request_error", "the script has ended"))

    def _send(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: the agent prints its turns."""


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}
