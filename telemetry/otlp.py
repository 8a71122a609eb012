"""OTLP/HTTP: requests and responses in both encodings, protobuf and JSON.

Specification: https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Any, TypeVar

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
from telemetry.protobuf_size import messages_exceed
from telemetry.records import LogRecord, Span

JSON, PROTOBUF = "application/json", "application/x-protobuf"

Record = TypeVar("Record", LogRecord, Span)

#: Log records or spans of an export. Exporters send hundreds.
MAX_RECORDS = 100_000

#: Messages of an export in protobuf, and separators in JSON, which limit its values. Small values take up to
#: 90 times as much memory as bytes, so a body of a few hundred compressed kilobytes could exhaust it.
_MAX_MESSAGES, _MAX_SEPARATORS = 2_000_000, 4_000_000

#: The response to each signal, and its field for the number of rejected records in protobuf and JSON.
_RESPONSES: dict[str, tuple[Any, str, str]] = {
    "logs": (ExportLogsServiceResponse, "rejected_log_records", "rejectedLogRecords"),
    "traces": (ExportTraceServiceResponse, "rejected_spans", "rejectedSpans"),
    "metrics": (ExportMetricsServiceResponse, "rejected_data_points", "rejectedDataPoints"),
}


class InvalidExport(ValueError):
    """The body is not an export request of the signal."""


class TooLarge(ValueError):
    """The decompressed body, or the number of records or values in it, exceeds its limit."""


def inflate(body: bytes, *, most: int) -> bytes:
    """Decompress a gzip body of at most `most` bytes. Raises `InvalidExport` or `TooLarge`."""
    try:
        data = gzip.GzipFile(fileobj=io.BytesIO(body)).read(most + 1)
    except EOFError:
        raise InvalidExport("the gzip body is truncated") from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise InvalidExport(f"the body is not valid gzip: {error}") from None
    if len(data) > most:
        raise TooLarge(f"the decompressed body exceeds the limit of {most:,} bytes")
    return data


def read_logs(body: bytes, encoding: str) -> list[LogRecord]:
    """Return the log records of an export request. Raises `InvalidExport` or `TooLarge`."""
    if encoding == JSON:
        return _limited(otlp_json.log_records(_json(body, "resourceLogs")))
    request = ExportLogsServiceRequest()
    _parse(request, body)
    return _limited(otlp_protobuf.log_records(request))


def read_spans(body: bytes, encoding: str) -> list[Span]:
    """Return the spans of an export request. Raises `InvalidExport` or `TooLarge`."""
    if encoding == JSON:
        return _limited(otlp_json.spans(_json(body, "resourceSpans")))
    request = ExportTraceServiceRequest()
    _parse(request, body)
    return _limited(otlp_protobuf.spans(request))


def _limited(records: Iterator[Record]) -> list[Record]:
    found = list(islice(records, MAX_RECORDS + 1))
    if len(found) > MAX_RECORDS:
        raise TooLarge(f"the export exceeds the limit of {MAX_RECORDS:,} records")
    return found


def _parse(request: Any, body: bytes) -> None:
    if messages_exceed(body, request.DESCRIPTOR, _MAX_MESSAGES):
        raise _too_many_values()
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise InvalidExport(f"the body is not a valid {type(request).__name__}: {error}") from None


def _json(body: bytes, field: str) -> list[Any]:
    if len(body) > _MAX_SEPARATORS and sum(map(body.count, (b",", b"{", b"["))) > _MAX_SEPARATORS:
        raise _too_many_values()
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidExport(f"the body is not JSON: {error}") from None
    found = value.get(field, []) if isinstance(value, dict) else None
    if not isinstance(found, list):
        raise InvalidExport(f"`{field}` must be an array")
    return found


def _too_many_values() -> TooLarge:
    return TooLarge("the export has too many values; send smaller batches")


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
