"""Responses of OpenAI's APIs: streams of Chat Completions and Responses."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from tests.gateway.double import Reply

EVENTS = [(b"content-type", b"text/event-stream")]
CHAT_USAGE = {
    "prompt_tokens": 1_000,
    "completion_tokens": 20,
    "total_tokens": 1_020,
    "prompt_tokens_details": {"cached_tokens": 900},
}
RESPONSES_USAGE = {
    "input_tokens": 1_000,
    "input_tokens_details": {"cached_tokens": 900},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 1_020,
}

JSON = dict[str, Any]


def chat_whole(answer: JSON, *, prompt: int = 1_000) -> Reply:
    choices = [{"index": 0, "message": answer, "finish_reason": "stop"}]
    id = f"chatcmpl-{uuid4().hex}"
    body = {"id": id, "object": "chat.completion", "created": 1, "model": "gpt-5", "choices": choices}
    usage = {**CHAT_USAGE, "prompt_tokens": prompt, "total_tokens": prompt + 20}
    return Reply(parts=[json.dumps({**body, "usage": usage}).encode()])


def chat_stream(answer: JSON, *, usage: bool = True, prompt: int = 1_000) -> Reply:
    deltas: list[JSON] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": character} for character in answer.get("content") or ""]
    for index, call in enumerate(answer.get("tool_calls", ())):
        kind, field = call["type"], "input" if call["type"] == "custom" else "arguments"
        name, text = call[kind]["name"], call[kind][field]
        deltas.append({"tool_calls": [{"index": index, **call, kind: {"name": name, field: ""}}]})
        deltas += [{"tool_calls": [{"index": index, kind: {field: part}}]} for part in text]
    if function := answer.get("function_call"):
        deltas.append({"function_call": {"name": function["name"], "arguments": ""}})
        deltas += [{"function_call": {"arguments": part}} for part in function["arguments"]]
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if usage:
        chunks.append({"choices": [], "usage": {**CHAT_USAGE, "prompt_tokens": prompt}})
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5"}
    lines = [f"data: {json.dumps({**head, **chunk})}\r\n\r\n".encode() for chunk in chunks]
    return Reply(headers=EVENTS, parts=[*lines, b"data: [DONE]\n\n"])


def response(*items: JSON, **fields: Any) -> JSON:
    return {
        "id": f"resp_{uuid4().hex}",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "gpt-5.1-codex",
        "output": list(items),
        "usage": RESPONSES_USAGE,
        **fields,
    }


def _usage(input_tokens: int) -> JSON:
    return {**RESPONSES_USAGE, "input_tokens": input_tokens, "total_tokens": input_tokens + 20}


def responses_whole(*items: JSON, input_tokens: int = 1_000, **fields: Any) -> Reply:
    return Reply(parts=[json.dumps(response(*items, usage=_usage(input_tokens), **fields)).encode()])


def responses_stream(*items: JSON, input_tokens: int = 1_000, **fields: Any) -> Reply:
    done = response(*items, usage=_usage(input_tokens), **fields)
    parts = [
        _event("response.created", response={**done, "status": "in_progress", "output": [], "usage": None})
    ]
    for index, item in enumerate(items):
        parts.append(_event("response.output_item.added", output_index=index, item=item))
        parts.append(_event("response.output_item.done", output_index=index, item=item))
    return Reply(headers=EVENTS, parts=[*parts, _event("response.completed", response=done)])


def _event(kind: str, **fields: Any) -> bytes:
    data = json.dumps({"type": kind, "sequence_number": 0, **fields})
    return f"event: {kind}\ndata: {data}\n\n".encode()


def said(words: str) -> JSON:
    part = {"type": "output_text", "text": words, "annotations": []}
    return {
        "type": "message",
        "id": f"msg_{uuid4().hex}",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def reasoned(number: int = 0) -> JSON:
    """Return reasoning with encrypted content, as clients that do not store responses request it."""
    return {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"opaque{number}"}


def function_call(id: str, name: str, **arguments: Any) -> JSON:
    call = {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": name, "status": "completed"}
    return {**call, "arguments": json.dumps(arguments)}
