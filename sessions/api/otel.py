"""`/otel/v1/logs`, `/otel/v1/traces` and `/otel/v1/metrics`: OpenTelemetry over HTTP (OTLP).

Errors are a `google.rpc.Status` in the encoding of the request, as the protocol requires.
"""

from __future__ import annotations

from typing import Any, ClassVar

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from accounts.models import Scope
from sessions.api.auth import Principal
from sessions.api.endpoint import ApiCall, Endpoint, body_of
from sessions.api.errors import InvalidRequest, sentence
from sessions.api.schema import operation
from sessions.services.telemetry.store import reports_store
from sessions.services.telemetry.values import Destination, Stored
from telemetry import otlp
from telemetry.reading import log_reports, span_reports
from telemetry.values import Report

#: A decompressed body may be this many times as large as a body may be.
_INFLATION = 4

_TYPES = {
    "application/json": otlp.JSON,
    "application/x-protobuf": otlp.PROTOBUF,
    "application/protobuf": otlp.PROTOBUF,
}

#: gRPC status codes of errors by HTTP status; others are INVALID_ARGUMENT.
_CODES = {401: 16, 403: 7, 404: 5, 405: 12, 429: 8, 500: 13, 503: 14}
_INVALID_ARGUMENT = 3


class _Export(Endpoint):
    """Receives the exports of one signal."""

    scopes = {"POST": Scope.PUSH}
    schema = None  # OTLP has its own specification; docs/guides/opentelemetry.md has the details
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

    @operation(operation_id="otlp", summary="Export telemetry", responses={200: None})
    def post(self, call: ApiCall) -> HttpResponse:
        """Stores what is known about agents in an export, and ignores the rest."""
        encoding = _encoding(call.request)
        try:
            stored = self.store(call.principal, _body(call.request), encoding)
        except otlp.InvalidExport as error:
            raise InvalidRequest("bad_json", sentence(error)) from None
        content = otlp.response(
            self.signal, encoding, rejected=stored.rejected, message=stored.reason[:1_000]
        )
        response = HttpResponse(content, content_type=encoding)
        response["Content-Length"] = str(len(content))
        return response

    def store(self, principal: Principal, body: bytes, encoding: str) -> Stored:
        """Store the export. Raises `InvalidExport`."""
        return Stored()


class Logs(_Export):
    signal = "logs"

    def store(self, principal: Principal, body: bytes, encoding: str) -> Stored:
        return _store(principal, log_reports(otlp.read_logs(body, encoding)))


class Traces(_Export):
    signal = "traces"

    def store(self, principal: Principal, body: bytes, encoding: str) -> Stored:
        return _store(principal, span_reports(otlp.read_spans(body, encoding)))


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
    """Return the decompressed body. Raises `InvalidRequest` or `InvalidExport`."""
    body = body_of(request)
    compression = request.META.get("HTTP_CONTENT_ENCODING", "identity").strip().lower()
    if compression in ("identity", ""):
        return body
    if compression not in ("gzip", "x-gzip"):
        raise InvalidRequest(
            "unsupported_media_type", "Only gzip is supported as compression of OTLP requests.", status=415
        )
    limit = settings.CONTEXTAPP_MAX_BODY_BYTES * _INFLATION
    try:
        return otlp.inflate(body, most=limit)
    except otlp.TooLarge:
        raise InvalidRequest(
            "body_too_large", f"The decompressed body exceeds the limit of {limit:,} bytes.", status=413
        ) from None
