"""`/otel/v1/logs`, `/otel/v1/traces` and `/otel/v1/metrics`: OpenTelemetry over HTTP (OTLP).

Errors are a `google.rpc.Status` in the encoding of the request, as the protocol requires.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework.serializers import Serializer

from accounts.models import Scope
from sessions.api.auth import Principal
from sessions.api.endpoint import ApiCall, Endpoint, body_of
from sessions.api.errors import InvalidRequest, sentence
from sessions.api.schema import ERROR_TEXTS
from sessions.api.serializers.otel import (
    ExportResult,
    LogsExport,
    MetricsExport,
    OtlpStatus,
    TracesExport,
)
from sessions.services.telemetry.store import reports_store
from sessions.services.telemetry.values import Destination, Stored
from telemetry import otlp
from telemetry.reading import log_reports, span_reports
from telemetry.values import Report

#: A decompressed body may be this many times as large as a body may be.
_INFLATION = 4

_RESPONSES: Mapping[int, tuple[type[Serializer[Any]], str]] = {
    200: (ExportResult, ""),
    **{code: (OtlpStatus, ERROR_TEXTS[code]) for code in (400, 401, 403, 413, 415, 429, 500, 503)},
}

_TYPES = {
    "application/json": otlp.JSON,
    "application/x-protobuf": otlp.PROTOBUF,
    "application/protobuf": otlp.PROTOBUF,
}

#: gRPC status codes of errors by HTTP status; others are INVALID_ARGUMENT.
_CODES = {401: 16, 403: 7, 404: 5, 405: 12, 429: 8, 500: 13, 503: 14}
_INVALID_ARGUMENT = 3


def _described(
    export: type[Serializer[Any]], *, description: str, **texts: Any
) -> Callable[[type[_Export]], type[_Export]]:
    """Describe the endpoint of a signal in the schema."""
    responses: dict[Any, Any] = {}
    for status, (body, meaning) in _RESPONSES.items():
        responses[status, otlp.JSON] = OpenApiResponse(body, description=meaning)
        responses[status, otlp.PROTOBUF] = OpenApiTypes.BINARY
    method = extend_schema(
        request={otlp.JSON: export, otlp.PROTOBUF: OpenApiTypes.BINARY},
        responses=responses,
        description=f"{description}\n\nRequires an API key with the `{Scope.PUSH}` scope.",
        **texts,
    )
    return extend_schema_view(post=method)


class _Export(Endpoint):
    """Receives the exports of one signal."""

    signal: ClassVar[str]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = super().dispatch(request, *args, **kwargs)
        if response.status_code < 400:
            return response
        message = orjson.loads(response.content)["error"]["message"]
        code = _CODES.get(response.status_code, _INVALID_ARGUMENT)
        encoding = _TYPES.get(request.content_type or "", otlp.JSON)
        response.content = otlp.status(code, message, encoding)
        response["Content-Type"] = encoding
        return response

    def post(self, call: ApiCall) -> HttpResponse:
        encoding = _encoding(call.request)
        try:
            stored = self.store(call.principal, _body(call.request), encoding)
        except otlp.InvalidExport as error:
            raise InvalidRequest("bad_json", sentence(error)) from None
        except otlp.TooLarge as error:
            raise InvalidRequest("body_too_large", sentence(error), status=413) from None
        content = otlp.response(
            self.signal, encoding, rejected=stored.rejected, message=stored.reason[:1_000]
        )
        response = HttpResponse(content, content_type=encoding)
        response["Content-Length"] = str(len(content))
        return response

    def store(self, principal: Principal, body: bytes, encoding: str) -> Stored:
        """Store the export. Raises `InvalidExport` or `TooLarge`."""
        return Stored()


@_described(
    LogsExport,
    operation_id="otel_logs",
    summary="Export logs",
    description="Stores the model calls that Claude Code and Codex report, as turns without messages. Other "
    "records are ignored.",
)
class Logs(_Export):
    signal = "logs"

    def store(self, principal: Principal, body: bytes, encoding: str) -> Stored:
        return _store(principal, log_reports(otlp.read_logs(body, encoding)))


@_described(
    TracesExport,
    operation_id="otel_traces",
    summary="Export traces",
    description="Stores the model calls and tool calls in spans that follow the semantic conventions for "
    "generative AI or OpenInference. Other spans are ignored.",
)
class Traces(_Export):
    signal = "traces"

    def store(self, principal: Principal, body: bytes, encoding: str) -> Stored:
        return _store(principal, span_reports(otlp.read_spans(body, encoding)))


@_described(
    MetricsExport,
    operation_id="otel_metrics",
    summary="Export metrics",
    description="Accepts metrics, which some exporters send with the same settings, and discards them.",
)
class Metrics(_Export):
    """Accepts metrics, because clients export them with the same settings, and discards them."""

    signal = "metrics"


def _store(principal: Principal, reports: list[Report]) -> Stored:
    destination = Destination(
        project_id=principal.project_id,
        key_id=principal.key_id,
        user_id=principal.user_id,
        redaction=principal.redaction,
        prices=principal.prices,
        has_upkeep=principal.upkeep,
    )
    return reports_store(destination, reports)


def _encoding(request: HttpRequest) -> str:
    encoding = _TYPES.get(request.content_type or "")
    if encoding is None:
        raise InvalidRequest(
            "unsupported_media_type",
            "Send OTLP as `application/x-protobuf` or `application/json`. For most exporters, set "
            "`OTEL_EXPORTER_OTLP_PROTOCOL` to `http/protobuf`.",
            status=415,
        )
    return encoding


def _body(request: HttpRequest) -> bytes:
    """Return the decompressed body. Raises `InvalidRequest`, `InvalidExport` or `TooLarge`."""
    body = body_of(request)
    compression = request.META.get("HTTP_CONTENT_ENCODING", "identity").strip().lower()
    if compression in ("identity", ""):
        return body
    if compression not in ("gzip", "x-gzip"):
        raise InvalidRequest(
            "unsupported_media_type", "OTLP requests can only be compressed with gzip.", status=415
        )
    return otlp.inflate(body, most=settings.CONTEXTAPP_MAX_BODY_BYTES * _INFLATION)
