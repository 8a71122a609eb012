"""Read a recorded call: its decoded request, and the answer in its response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from gateway.calls import Call
from gateway.encodings import Unreadable, decoded
from gateway.providers import PROVIDERS, Answer
from gateway.sse import events


def request_of(call: Call) -> tuple[bytes, Mapping[str, Any]]:
    """Return the decoded request body and its JSON object. Raises `Unreadable`."""
    data = decoded(call.body, call.headers.get("content-encoding", ""))
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise Unreadable(f"the request is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Unreadable("the request is not a JSON object")
    return data, value


def answer_of(call: Call) -> Answer:
    """Return the answer. It has no message if the response is an error or incomplete."""
    provider = PROVIDERS[call.provider]
    if not 200 <= call.status < 300:
        return Answer()
    try:
        data = decoded(call.response, call.response_encoding)
        if call.response_type.startswith("text/event-stream"):
            return provider.read_events(call.endpoint, list(events(data)))
        value = orjson.loads(data)
    except (Unreadable, orjson.JSONDecodeError):
        return Answer()
    return provider.read_body(call.endpoint, value) if isinstance(value, dict) else Answer()
