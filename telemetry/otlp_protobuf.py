"""OTLP in protobuf, decoded by the classes of `opentelemetry-proto`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from telemetry.records import MAX_ID, LogRecord, Span, SpanEvent, time_of

_STATUS_ERROR = 2


def log_records(request: Any) -> Iterator[LogRecord]:
    """Yield the log records of an `ExportLogsServiceRequest`."""
    for group in request.resource_logs:
        resource = attributes_of(group.resource.attributes)
        for scope in group.scope_logs:
            for record in scope.log_records:
                attributes = attributes_of(record.attributes)
                name = attributes.get("event.name") or record.event_name or record.body.string_value
                yield LogRecord(
                    name=str(name),
                    at=time_of(record.time_unix_nano or record.observed_time_unix_nano),
                    attributes=attributes,
                    resource=resource,
                )


def spans(request: Any) -> Iterator[Span]:
    """Yield the spans of an `ExportTraceServiceRequest`."""
    for group in request.resource_spans:
        resource = attributes_of(group.resource.attributes)
        for scope in group.scope_spans:
            for span in scope.spans:
                yield Span(
                    name=span.name,
                    trace_id=span.trace_id.hex()[:MAX_ID],
                    span_id=span.span_id.hex()[:MAX_ID],
                    started_at=time_of(span.start_time_unix_nano),
                    ended_at=time_of(span.end_time_unix_nano),
                    attributes=attributes_of(span.attributes),
                    resource=resource,
                    events=tuple(
                        SpanEvent(name=event.name, attributes=attributes_of(event.attributes))
                        for event in span.events
                    ),
                    is_error=span.status.code == _STATUS_ERROR,
                )


def attributes_of(pairs: Iterable[Any]) -> dict[str, Any]:
    """Return key-value pairs as a dictionary of plain values."""
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    match kind:
        case "array_value":
            return [_value(each) for each in value.array_value.values]
        case "kvlist_value":
            return attributes_of(value.kvlist_value.values)
        case None:
            return None
        case _:
            return getattr(value, kind)
