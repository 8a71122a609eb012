"""Exports as agents send them: OTLP in JSON and in protobuf."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.test import Client
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

JSON = dict[str, Any]

SESSION = "7d0f2c9e-2b51-4b0f-9d4b-0c6a4d1f6a11"
START = datetime(2026, 11, 22, 9, tzinfo=UTC)
RESOURCE: JSON = {"service.name": "claude-code", "service.version": "2.1.197", "host.arch": "amd64"}


def value(given: Any) -> JSON:
    match given:
        case bool():
            return {"boolValue": given}
        case int():
            return {"intValue": str(given)}
        case float():
            return {"doubleValue": given}
        case list():
            return {"arrayValue": {"values": [value(each) for each in given]}}
        case dict():
            return {"kvlistValue": {"values": pairs(given)}}
    return {"stringValue": str(given)}


def pairs(attributes: JSON) -> list[JSON]:
    return [{"key": key, "value": value(given)} for key, given in attributes.items()]


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def event(name: str, seconds: float = 0, **attributes: Any) -> JSON:
    """Return an event of Claude Code."""
    nanos = str(int(at(seconds).timestamp() * 1_000_000_000))
    given = {"session.id": SESSION, "event.name": name, "event.sequence": int(seconds), **attributes}
    return {
        "timeUnixNano": nanos,
        "body": {"stringValue": f"claude_code.{name}"},
        "attributes": pairs(given),
    }


def call(request_id: str, seconds: float = 0, **attributes: Any) -> JSON:
    """Return the event of a model call."""
    figures = {
        "model": "claude-sonnet-4-5",
        "input_tokens": 12,
        "output_tokens": 57,
        "cache_read_tokens": 4_000,
        "cache_creation_tokens": 300,
        "cost_usd_micros": 5_360,
        "duration_ms": 108,
        "query_source": "repl_main_thread",
        "request_id": request_id,
    }
    return event("api_request", seconds, **(figures | attributes))


def codex_call(seconds: float = 0, **attributes: Any) -> JSON:
    """Return the event with which a response of Codex ends. Its numbers are strings."""
    given = {
        "event.name": "codex.sse_event",
        "event.kind": "response.completed",
        "event.timestamp": at(seconds).isoformat().replace("+00:00", "Z"),
        "conversation.id": SESSION,
        "model": "gpt-5.1-codex",
        "input_token_count": "1000",
        "cached_token_count": "900",
        "output_token_count": "20",
        "reasoning_token_count": "5",
        **attributes,
    }
    return {"timeUnixNano": "0", "attributes": pairs(given)}


def export(*records: JSON, resource: JSON | None = None) -> JSON:
    group = {
        "resource": {"attributes": pairs(RESOURCE if resource is None else RESOURCE | resource)},
        "scopeLogs": [{"scope": {"name": "events"}, "logRecords": list(records)}],
    }
    return {"resourceLogs": [group]}


def protobuf(body: JSON) -> bytes:
    """Return log records, without trace ids, in protobuf."""
    return json_format.ParseDict(body, ExportLogsServiceRequest()).SerializeToString()


def post(
    key: str, body: Any, *, signal: str = "logs", type: str = "application/json", compressed: bool = False
) -> HttpResponse:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {key}"} if key else {}
    if compressed:
        content, headers["content-encoding"] = gzip.compress(content), "gzip"
    extra = {"CONTENT_TYPE": type}  # the client leaves it out of requests without a body
    return Client().generic(
        "POST", f"/otel/v1/{signal}", content, content_type=type, headers=headers, **extra
    )


def send(key: str, *records: JSON, resource: JSON | None = None) -> None:
    """Export events, and expect that all are accepted."""
    response = post(key, export(*records, resource=resource))
    assert (response.status_code, response.content) == (200, b"{}")


def figures(turns: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [
        (t.uncached_tokens, t.cache_read_tokens, t.cache_write_tokens, t.output_tokens, t.cost_microusd)
        for t in turns
    ]
