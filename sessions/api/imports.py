"""`imports/`: an agent's log becomes sessions. Importing again adds nothing."""

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

#: So many damaged lines are named; the rest is a number.
_NAMED_DAMAGES = 100


class Imports(Endpoint):
    @operation(
        operation_id="imports_create",
        summary="Import a log file of a known format",
        parameters=[
            OpenApiParameter(
                "name", str, description="the file's name, from which sessions without an id get theirs"
            ),
            OpenApiParameter(
                "format", str, enum=list(IMPORTERS), description="else recognised by the content"
            ),
        ],
        request={
            "multipart/form-data": serializers.ImportUpload,
            "application/octet-stream": OpenApiTypes.BINARY,
        },
        responses={200: serializers.Imported, **error_responses(400, 409, 413, 422)},
    )
    def post(self, call: ApiCall) -> HttpResponse:
        file = _log(call)
        log = Reader(redaction=call.principal.redaction, format=_format(call)).read_file(file)
        if not log.importer:
            raise InvalidRequest(
                "unknown_format",
                f"the file is in none of the known formats: {', '.join(IMPORTERS)}",
                status=422,
            )
        project = Project.objects.get(pk=call.principal.project_id)
        stored = [
            _stored_json(prepared.facts.external_id, result)
            for prepared, result in zip(log.sessions, log_import(project=project, log=log), strict=True)
        ]
        _refuse_if_nothing_agrees(stored)
        return json_response(
            {
                "format": log.importer,
                "name": file.name,
                "sessions": stored,
                "damage_count": len(log.damages),
                "damages": [{"line": d.line, "reason": d.reason} for d in log.damages[:_NAMED_DAMAGES]],
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


def _refuse_if_nothing_agrees(stored: Sequence[dict[str, Any]]) -> None:
    if stored and all(row["state"] == "conflict" for row in stored):
        raise Conflict("import_conflict", stored[0]["reason"])


def _format(call: ApiCall) -> str | None:
    wanted = call.query.get("format")
    if wanted is not None and wanted not in IMPORTERS:
        raise InvalidRequest(
            "invalid_field", f"`format` must be one of: {', '.join(IMPORTERS)}", param="format"
        )
    return wanted


def _log(call: ApiCall) -> LogFile:
    """The uploaded file: `file` of a form, or the body itself. Raises `InvalidRequest`."""
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
        raise InvalidRequest("bad_json", f"the form cannot be read: {error}") from None
    except UnreadablePostError:
        raise InvalidRequest("bad_json", "the body ended before it was complete") from None
    if not data:
        raise InvalidRequest("missing_field", "the file is empty or missing", param="file")
    name = call.query.get("name") or name or f"log-{hashlib.sha256(data).hexdigest()[:12]}"
    if len(name) > 200 or not name.isprintable():
        raise InvalidRequest("invalid_field", "`name` must have 1 to 200 printable characters", param="name")
    return LogFile(name=name, data=data)


def _form_file(request: HttpRequest) -> tuple[str, bytes]:
    file = request.FILES.get("file")
    return (file.name or "", file.read()) if file is not None else ("", b"")


def _body(request: HttpRequest) -> tuple[str, bytes]:
    # Not `request.body`, which holds to the smaller limit of the other calls.
    return "", request.read(settings.CONTEXTAPP_MAX_IMPORT_BYTES + 1)


def _too_large() -> InvalidRequest:
    limit = settings.CONTEXTAPP_MAX_IMPORT_BYTES
    return InvalidRequest(
        "body_too_large",
        f"the file is larger than {limit:,} bytes; `manage.py import_sessions` takes larger ones",
        status=413,
    )
