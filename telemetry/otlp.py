"""OTLP/HTTP: requests and responses in both encodings, protobuf and JSON.

Specification: https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from typing import Any

import orjson
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from telemetry import otlp_json, otlp_protobuf
from telemetry.records import LogRecord, Span

JSON, PROTOBUF = "application/json", "application/x-protobuf"

#: The response to each signal, and its field for the number of rejected records in protobuf and JSON.
_RESPONSES: dict[str, tuple[Any, str, str]] = {
    "logs": (ExportLogsServiceResponse, "rejected_log_records", "rejectedLogRecords"),
    "traces": (ExportTraceServiceResponse, "rejected_spans", "rejectedSpans"),
    "metrics": (ExportMetricsServiceResponse, "rejected_data_points", "rejectedDataPoints"),
}


class InvalidExport(ValueError):
    """The body is not an export request of the signal."""


class TooLarge(ValueError):
    """The body is larger than the limit when it is decompressed."""


def inflate(body: bytes, *, most: int) -> bytes:
    """Decompress a gzip body of at most `most` bytes. Raises `InvalidExport` or `TooLarge`."""
    try:
        data = gzip.GzipFile(fileobj=io.BytesIO(body)).read(most + 1)
    except EOFError:
        raise InvalidExport("the gzip body is truncated") from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise InvalidExport(f"the body is not valid gzip: {error}") from None
    if len(data) > most:
        raise TooLarge
    return data


def read_logs(body: bytes, encoding: str) -> Iterator[LogRecord]:
    """Return the log records of an export request. Raises `InvalidExport`."""
    if encoding == JSON:
        return otlp_json.log_records(_json(body, "resourceLogs"))
    request = ExportLogsServiceRequest()
    _parse(request, body)
    return otlp_protobuf.log_records(request)


def read_spans(body: bytes, encoding: str) -> Iterator[Span]:
    """Return the spans of an export request. Raises `InvalidExport`."""
    if encoding == JSON:
        return otlp_json.spans(_json(body, "resourceSpans"))
    request = ExportTraceServiceRequest()
    _parse(request, body)
    return otlp_protobuf.spans(request)


def _parse(request: Any, body: bytes) -> None:
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise InvalidExport(f"the body is not a valid {type(request).__name__}: {error}") from None


def _json(body: bytes, field: str) -> list[Any]:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidExport(f"the body is not JSON: {error}") from None
    found = value.get(field, []) if isinstance(value, dict) else None
    if not isinstance(found, list):
        raise InvalidExport(f"`{field}` must be an array")
    return found


def response(signal: str, encoding: str, *, rejected: int = 0, message: str = "") -> bytes:
    """Return the body of a response: empty, or with the number of rejected records and the reason."""
    kind, field, json_field = _RESPONSES[signal]
    if encoding == JSON:
        if not rejected and not message:
            return b"{}"
        partial = {json_field: str(rejected), "errorMessage": message}
        return orjson.dumps({"partialSuccess": partial})
    built = kind()
    if rejected or message:
        setattr(built.partial_success, field, rejected)
        built.partial_success.error_message = message
    return bytes(built.SerializeToString())


def status(code: int, message: str, encoding: str) -> bytes:
    """Return an error as a `google.rpc.Status`. `code` is a gRPC status code."""
    if encoding == JSON:
        return orjson.dumps({"code": code, "message": message})
    text = message.encode()
    return b"\x08" + _varint(code) + b"\x12" + _varint(len(text)) + text


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*data, number])
