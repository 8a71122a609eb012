"""OTLP in JSON: IDs are hexadecimal, 64-bit integers are strings, and unknown fields are ignored."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from telemetry.records import MAX_ID, LogRecord, Span, SpanEvent, time_of

#: Nesting of values beyond which they are dropped.
_MAX_DEPTH = 32


def log_records(resources: Sequence[Any]) -> Iterator[LogRecord]:
    """Yield the log records in `resourceLogs`. Malformed ones are skipped."""
    for resource, record in _entries(resources, "scopeLogs", "logRecords"):
        attributes = attributes_of(record.get("attributes"))
        yield LogRecord(
            name=str(attributes.get("event.name") or record.get("eventName") or _text(record.get("body"))),
            at=time_of(_integer(record.get("timeUnixNano")) or _integer(record.get("observedTimeUnixNano"))),
            attributes=attributes,
            resource=resource,
        )


def spans(resources: Sequence[Any]) -> Iterator[Span]:
    """Yield the spans in `resourceSpans`. Malformed ones are skipped."""
    for resource, span in _entries(resources, "scopeSpans", "spans"):
        yield Span(
            name=str(span.get("name") or ""),
            trace_id=_id(span.get("traceId")),
            span_id=_id(span.get("spanId")),
            started_at=time_of(_integer(span.get("startTimeUnixNano"))),
            ended_at=time_of(_integer(span.get("endTimeUnixNano"))),
            attributes=attributes_of(span.get("attributes")),
            resource=resource,
            events=tuple(
                SpanEvent(
                    name=str(event.get("name") or ""), attributes=attributes_of(event.get("attributes"))
                )
                for event in _objects(span.get("events"))
            ),
            is_error=_object(span.get("status")).get("code") in (2, "STATUS_CODE_ERROR"),
        )


def _entries(
    resources: Sequence[Any], scopes: str, entries: str
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield each record or span with the attributes of its resource, which come first."""
    for group in _objects(resources):
        resource = attributes_of(_object(group.get("resource")).get("attributes"))
        for scope in _objects(group.get(scopes)):
            for entry in _objects(scope.get(entries)):
                yield resource, entry


def attributes_of(value: Any) -> dict[str, Any]:
    """Return a list of key-value pairs as a dictionary of plain values."""
    return {str(pair.get("key")): _value(pair.get("value")) for pair in _objects(value)}


def _value(value: Any, depth: int = 0) -> Any:
    if not isinstance(value, dict) or depth > _MAX_DEPTH:
        return None
    for kind, given in value.items():
        match kind:
            case "stringValue" | "boolValue" | "doubleValue":
                return given
            case "intValue":
                return _integer(given)
            case "arrayValue":
                return [_value(each, depth + 1) for each in _list(_object(given).get("values"))]
            case "kvlistValue":
                pairs = _objects(_object(given).get("values"))
                return {str(pair.get("key")): _value(pair.get("value"), depth + 1) for pair in pairs}
            case "bytesValue":
                return _bytes(given)
    return None


def _bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        return b""


def _text(body: Any) -> str:
    value = _value(body)
    return value if isinstance(value, str) else ""


def _id(value: Any) -> str:
    return str(value or "").lower()[:MAX_ID]


def _integer(value: Any) -> int:
    """Return a 64-bit integer, which may be a string; 0 if it is neither."""
    try:
        found = int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return found if -(2**63) <= found < 2**64 else 0


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in _list(value) if isinstance(item, dict)]


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
