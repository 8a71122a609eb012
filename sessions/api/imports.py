"""`imports/`: import agent logs as sessions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.http.request import UnreadablePostError
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

from accounts.models import Project, Scope
from importers.base import LogFile
from importers.registry import IMPORTERS
from sessions.api import serializers
from sessions.api.endpoint import ApiCall, Endpoint, json_response, refuse_compressed
from sessions.api.errors import Conflict, InvalidRequest
from sessions.api.schema import error_responses, operation
from sessions.services.imports.logs import log_import
from sessions.services.imports.reader import Reader
from sessions.services.imports.store import ImportConflictError, ImportResult

#: Maximum number of damaged lines listed in the response. All of them are counted.
_MAX_DAMAGES = 100


class Imports(Endpoint):
    @operation(
        operation_id="imports_create",
        summary="Import a log file",
        parameters=[
            OpenApiParameter(
                "name", str, description="File name; the id of sessions whose log contains none."
            ),
            OpenApiParameter(
                "format",
                str,
                enum=list(IMPORTERS),
                description="Log format. Defaults to detecting it from the content.",
            ),
        ],
        request={
            "multipart/form-data": serializers.ImportUpload,
            "application/octet-stream": OpenApiTypes.BINARY,
        },
        responses={200: serializers.ImportResult, **error_responses(400, 409, 413, 422)},
    )
    def post(self, call: ApiCall) -> HttpResponse:
        """Imports an uncompressed agent log as one or more sessions. Importing the same log again adds only
        turns that are new. Send the file as `file` in a form, or as the raw request body."""
        file = _log(call)
        log = Reader(redaction=call.principal.redaction, format=_format(call)).read_file(file)
        if not log.importer:
            raise InvalidRequest(
                "unknown_format",
                f"The file is not in a supported format. Supported: {', '.join(IMPORTERS)}.",
                status=422,
            )
        project = Project.objects.get(pk=call.principal.project_id)
        stored = [
            _stored_json(prepared.facts.external_id, result)
            for prepared, result in zip(log.sessions, log_import(project=project, log=log), strict=True)
        ]
        _raise_if_all_conflict(stored)
        return json_response(
            {
                "format": log.importer,
                "name": file.name,
                "sessions": stored,
                "damage_count": len(log.damages),
                "damages": [{"line": d.line, "reason": d.reason} for d in log.damages[:_MAX_DAMAGES]],
            }
        )

    scopes = {"POST": Scope.PUSH}


def _stored_json(external_id: str, result: ImportResult | ImportConflictError) -> dict[str, Any]:
    row: dict[str, Any] = {"external_id": external_id, "turns": 0, "messages": 0, "reason": None}
    if isinstance(result, ImportConflictError):
        return {**row, "id": None, "state": "conflict", "reason": str(result), "redacted": []}
    return {
        **row,
        "id": result.session.pk,
        "state": "new" if result.created else "grown" if result.changed else "unchanged",
        "turns": result.turns_added,
        "messages": result.messages_added,
        "redacted": [{"kind": kind, "count": count} for kind, count in result.redacted.items()],
    }


def _raise_if_all_conflict(stored: Sequence[dict[str, Any]]) -> None:
    if stored and all(row["state"] == "conflict" for row in stored):
        raise Conflict("import_conflict", stored[0]["reason"])


def _format(call: ApiCall) -> str | None:
    name = call.query.get("format")
    if name is not None and name not in IMPORTERS:
        raise InvalidRequest(
            "invalid_field", f"`format` must be one of: {', '.join(IMPORTERS)}.", param="format"
        )
    return name


def _log(call: ApiCall) -> LogFile:
    """Return the uploaded file: `file` of a form, or the request body. Raises `InvalidRequest`."""
    request = call.request
    refuse_compressed(request)
    length = request.META.get("CONTENT_LENGTH") or "0"
    if length.isdigit() and int(length) > settings.CONTEXTAPP_MAX_IMPORT_BYTES:
        raise _too_large()
    try:
        name, data = _form_file(request) if request.content_type == "multipart/form-data" else _body(request)
    except RequestDataTooBig:
        raise _too_large() from None
    except (MultiPartParserError, SuspiciousOperation) as error:
        raise InvalidRequest("bad_json", f"The multipart form could not be parsed: {error}") from None
    except UnreadablePostError:
        raise InvalidRequest(
            "bad_json", "The connection closed before the whole body was received."
        ) from None
    if not data:
        raise InvalidRequest("missing_field", "`file` is missing or empty.", param="file")
    name = call.query.get("name") or name or f"log-{hashlib.sha256(data).hexdigest()[:12]}"
    if len(name) > 200 or not name.isprintable():
        raise InvalidRequest("invalid_field", "`name` must have 1 to 200 printable characters.", param="name")
    return LogFile(name=name, data=data)


def _form_file(request: HttpRequest) -> tuple[str, bytes]:
    file = request.FILES.get("file")
    return (file.name or "", file.read()) if file is not None else ("", b"")


def _body(request: HttpRequest) -> tuple[str, bytes]:
    # `request.body` would apply the smaller size limit of other endpoints.
    return "", request.read(settings.CONTEXTAPP_MAX_IMPORT_BYTES + 1)


def _too_large() -> InvalidRequest:
    limit = settings.CONTEXTAPP_MAX_IMPORT_BYTES
    return InvalidRequest(
        "body_too_large",
        f"The file exceeds the limit of {limit:,} bytes. Use `manage.py import_sessions` for larger files.",
        status=413,
    )
