"""Read a recorded call: its decoded request, and the answer in its response."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from gateway.calls import Call
from gateway.encodings import Unreadable, decoded
from gateway.providers import PROVIDERS, Answer


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
    if isinstance(value, list):  # how Gemini streams without `alt=sse`
        return provider.read_events(call.endpoint, [each for each in value if isinstance(each, dict)])
    return provider.read_body(call.endpoint, value) if isinstance(value, dict) else Answer()


#: Events are separated by a blank line, with any of the three line endings.
_BLANK = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE = re.compile(rb"\r\n|\n|\r")


def events(data: bytes) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON object of each complete event. Comments and other data are skipped.

    The bytes are split before they are decoded, so that a character is never split.
    """
    *whole, rest = _BLANK.split(data)
    if rest.strip():
        whole.append(rest)
    for event in whole:
        lines = [line[5:].lstrip(b" ") for line in _LINE.split(event) if line.startswith(b"data:")]
        try:
            value = orjson.loads(b"\n".join(lines))
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            yield value
