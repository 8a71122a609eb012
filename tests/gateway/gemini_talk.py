"""Responses of Gemini's API: whole, and as streams of events or of one array."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.gateway.double import Headers, Reply

JSON = dict[str, Any]

EVENTS: Headers = [(b"content-type", b"text/event-stream")]
USAGE = {
    "promptTokenCount": 1_000,
    "cachedContentTokenCount": 900,
    "candidatesTokenCount": 20,
    "thoughtsTokenCount": 5,
    "totalTokenCount": 1_025,
}
#: The path of a call at the gateway.
PATH = "/gemini/v1beta/models/gemini-2.5-pro"


def said(text: str, role: str = "user") -> JSON:
    return {"role": role, "parts": [{"text": text}]}


def called(name: str, *, signature: str = "", id: str = "", **arguments: Any) -> JSON:
    """Return a part with a call."""
    call: JSON = {"name": name, "args": arguments} | ({"id": id} if id else {})
    return {"functionCall": call} | ({"thoughtSignature": signature} if signature else {})


def responded(name: str, output: str, *, id: str = "") -> JSON:
    """Return a content with a response."""
    response: JSON = {"name": name, "response": {"output": output}} | ({"id": id} if id else {})
    return {"role": "user", "parts": [{"functionResponse": response}]}


def whole(*parts: JSON, prompt: int = 1_000) -> Reply:
    return Reply(parts=[json.dumps(_response(parts, _usage(prompt), finish="STOP")).encode()])


def streamed(*parts: JSON, prompt: int = 1_000, is_array: bool = False) -> Reply:
    """Return a response in chunks: one per part, and one per word of a text."""
    chunks = [piece for part in parts for piece in _pieces(part)]
    last = len(chunks) - 1
    made = [
        json.dumps(
            _response([piece], _usage(prompt) if at == last else None, finish="STOP" if at == last else "")
        )
        for at, piece in enumerate(chunks)
    ]
    if is_array:
        return Reply(
            parts=[f"{',' if at else '['}{each}\r\n".encode() for at, each in enumerate(made)] + [b"]"]
        )
    return Reply(headers=EVENTS, parts=[f"data: {each}\r\n\r\n".encode() for each in made])


def _pieces(part: JSON) -> list[JSON]:
    words = part.get("text", "").split(" ")
    if len(words) == 1:
        return [part]
    return [{**part, "text": word if at == len(words) - 1 else f"{word} "} for at, word in enumerate(words)]


def _response(parts: Sequence[JSON], usage: JSON | None, *, finish: str) -> JSON:
    candidate: JSON = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    return {
        "candidates": [candidate | ({"finishReason": finish} if finish else {})],
        "modelVersion": "gemini-2.5-pro",
        "responseId": "r-1",
        **({"usageMetadata": usage} if usage else {}),
    }


def _usage(prompt: int) -> JSON:
    return {**USAGE, "promptTokenCount": prompt, "cachedContentTokenCount": prompt * 9 // 10}
