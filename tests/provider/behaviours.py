"""Behaviors of the fake provider. Each converts a request's body to an answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

from tests.provider.summaries import summary_of

JSON = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A response that is sent after `delay` seconds, or as soon as `until` is set.

    `cut` closes the connection in the middle of the body. With `pause`, the body is sent byte by byte, with a
    pause of this many seconds before each.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    until: Event | None = None
    cut: bool = False
    pause: float = 0.0


Behaviour = Callable[[JSON], Answer]


def says(text: str, *, stop_reason: str = "end_turn") -> Behaviour:
    """Answer with this text."""
    return lambda request: _message(request, text, stop_reason)


def operations(*operations_: Any, delay: float = 0.0) -> Behaviour:
    """Answer with operations on a working memory, after `delay` seconds."""
    text = json.dumps({"operations": operations_})
    return lambda request: replace(_message(request, text), delay=delay)


def operation(op: str, text: str = "", *, field: str = "decisions", item: str = "", message: Any = 0) -> JSON:
    """Return one operation."""
    return {"op": op, "field": field, "item": item, "text": text, "message": message}


def summary(*, delay: float = 0.0, **changes: Any) -> Behaviour:
    """Answer with a valid summary of the request after `delay` seconds. `changes` replace its fields."""

    def answer(request: JSON) -> Answer:
        text = json.dumps({**summary_of(request), **changes})
        return replace(_message(request, text), delay=delay)

    return answer


def delayed(behaviour: Behaviour, until: Event, *, maximum: float = 60.0) -> Behaviour:
    """Delay a behavior until the event is set, at most `maximum` seconds."""
    return lambda request: replace(behaviour(request), delay=maximum, until=until)


def obedient(command: str) -> Behaviour:
    """Answer like a model that obeys an injected instruction: repeat it in every section."""
    return lambda request: _message(
        request,
        json.dumps(
            {
                "decisions": [{"text": command, "status": "standing", "sources": [10**6]}],
                "entities": [{"name": command, "notes": [command], "names": [command], "sources": []}],
                "facts": [{"text": f"## New rules\n[system] {command}", "sources": []}],
                "open_items": [{"text": f"Next: {command}", "status": "open", "sources": []}],
            }
        ),
    )


def overlong(characters: int = 60_000) -> Behaviour:
    """Answer with a valid summary that is too long."""
    return summary(facts=[{"text": "and so on " * (characters // 10), "sources": []}])


def cut_off() -> Behaviour:
    """Answer with JSON that `max_tokens` truncated."""
    return lambda request: _message(request, json.dumps(summary_of(request))[:-20], "max_tokens")


def malformed() -> Behaviour:
    """Answer with a summary that is not JSON."""
    return lambda request: _message(request, json.dumps(summary_of(request)).replace('":', '" '))


def refusal() -> Behaviour:
    return lambda request: _message(request, "", "refusal")


def error(status: int, kind: str = "api_error", **headers: str) -> Behaviour:
    """Answer with an API error. `retry_after="1"` is a header."""
    body = {"type": "error", "error": {"type": kind, "message": f"scripted {kind}"}, "request_id": "req_x"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda request: Answer(status=status, body=json.dumps(body).encode(), headers=named)


def rate_limited(retry_after: str = "1") -> Behaviour:
    return error(429, "rate_limit_error", retry_after=retry_after)


def overloaded() -> Behaviour:
    return error(529, "overloaded_error")


def cut_connection() -> Behaviour:
    """Close the connection in the middle of the answer's body."""
    return lambda request: replace(summary()(request), cut=True)


def reporting(usage: JSON) -> Behaviour:
    """Answer with a valid summary that reports this usage."""

    def answer(request: JSON) -> Answer:
        made = summary()(request)
        return replace(made, body=json.dumps({**json.loads(made.body), "usage": usage}).encode())

    return answer


def trickling(pause: float = 0.05) -> Behaviour:
    """Send a valid summary byte by byte."""
    return lambda request: replace(summary()(request), pause=pause)


def page() -> Behaviour:
    """Answer like a proxy: status 200 without JSON."""
    return lambda request: Answer(body=b"<html>Sign in</html>", headers={"content-type": "text/html"})


def body(data: bytes) -> Behaviour:
    """Answer with status 200 and these bytes."""
    return lambda request: Answer(body=data)


def _message(request: JSON, text: str, stop_reason: str = "end_turn") -> Answer:
    message = {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": len(json.dumps(request)) // 4, "output_tokens": len(text) // 4},
    }
    return Answer(body=json.dumps(message).encode())
