"""Responses of Anthropic's API: streams of events and whole messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from tests.gateway.double import Reply

USAGE = {"input_tokens": 12, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 4_000}
STREAM = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"request-id", b"req_1"),
    (b"anthropic-ratelimit-unified-5h-utilization", b"0.5"),
]


def event(kind: str, **fields: Any) -> bytes:
    data = json.dumps({"type": kind, **fields}, ensure_ascii=False)
    return f"event: {kind}\ndata: {data}\n\n".encode()


def stream(
    *blocks: dict[str, Any], stop: str = "end_turn", model: str = "claude-sonnet-4-5", read: int = 4_000
) -> list[bytes]:
    """Return the events of a response with these content blocks, in small deltas."""
    message = _message(model) | {"usage": {**USAGE, "cache_read_input_tokens": read, "output_tokens": 1}}
    parts = [event("message_start", message=message), event("ping")]
    for index, block in enumerate(blocks):
        parts += _block(index, block)
    parts.append(event("message_delta", delta={"stop_reason": stop}, usage={"output_tokens": 57}))
    return [*parts, event("message_stop")]


def _message(model: str) -> dict[str, Any]:
    """Return a message with a unique id, because Claude Code merges messages with the same id."""
    id = f"msg_{uuid4().hex}"
    return {"id": id, "type": "message", "role": "assistant", "model": model, "content": []}


def _block(index: int, block: dict[str, Any]) -> list[bytes]:
    start, deltas = dict(block), []
    if block["type"] == "text":
        start["text"], whole = "", block["text"]
        deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(whole)]
    elif block["type"] == "thinking":
        start |= {"thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    elif block["type"] == "tool_use":
        start["input"] = {}
        deltas = [
            {"type": "input_json_delta", "partial_json": piece}
            for piece in _pieces(json.dumps(block["input"]))
        ]
    return [
        event("content_block_start", index=index, content_block=start),
        *(event("content_block_delta", index=index, delta=delta) for delta in deltas),
        event("content_block_stop", index=index),
    ]


def _pieces(text: str) -> Sequence[str]:
    return [text[at : at + 5] for at in range(0, len(text), 5)]


def streamed(*blocks: dict[str, Any], **options: Any) -> Reply:
    own_id = [(name, _request_id() if name == b"request-id" else value) for name, value in STREAM]
    return Reply(headers=own_id, parts=stream(*blocks, **options))


def whole(*blocks: dict[str, Any], model: str = "claude-sonnet-4-5", read: int = 4_000) -> Reply:
    usage = {**USAGE, "cache_read_input_tokens": read, "output_tokens": 57}
    body = _message(model) | {"content": list(blocks), "stop_reason": "end_turn", "usage": usage}
    headers = [(b"content-type", b"application/json"), (b"request-id", _request_id())]
    return Reply(headers=headers, parts=[json.dumps(body, ensure_ascii=False).encode()])


def _request_id() -> bytes:
    return f"req_{uuid4().hex}".encode()


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def tool_use(id: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "Bash", "input": arguments}


def request(*messages: dict[str, Any], **fields: Any) -> bytes:
    body = {"model": "claude-sonnet-4-5", "max_tokens": 1024, "stream": True, "messages": list(messages)}
    return json.dumps(body | fields, ensure_ascii=False).encode()
