"""`imports/`: upload a log, and follow or cancel its import."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

from importers.registry import IMPORTERS
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import ApiError, Conflict, InvalidRequest, about
from sessions.api.imports.upload import opened_upload
from sessions.api.lookup import row_or_404
from sessions.api.paging import id_cursor, limit_param, number_cursor, page_json, paging
from sessions.api.parameters import choice_param
from sessions.api.schema import operation
from sessions.api.serializers import imports as serializers
from sessions.models import ImportJob, ImportJobSession
from sessions.selectors.imports import import_job_sessions, import_jobs_newest
from sessions.services.imports import jobs
from sessions.services.imports.execution import import_step

#: A file of at most this size is imported within the request if that takes at most so many seconds.
SMALL_BYTES, SMALL_SECONDS = 256 * 1024, 2.0

_SHOWN_SESSIONS = 100


class Imports(Endpoint):
    @operation("imports_list", "List imports", serializers.ImportJobList, parameters=paging())
    def get(self, call: ApiCall) -> HttpResponse:
        """Returns imports over the API and in the dashboard, newest first. An import is listed for 30 days
        after it ended."""
        limit = limit_param(call)
        rows = import_jobs_newest(
            project_id=call.principal.project_id, before=id_cursor(call), limit=limit + 1
        )
        return json_response(page_json(rows, limit, _job_json, lambda job: [str(job.pk)]))

    @operation(
        "imports_create",
        "Import a log file",
        parameters=[
            OpenApiParameter(
                "name", str, description="File name. Also the id of a session whose log contains none."
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
        responses={200: serializers.ImportJobDetail, 202: serializers.ImportJobDetail},
        errors=(409, 422),
    )
    def post(self, call: ApiCall) -> HttpResponse:
        """Imports an uncompressed agent log as one or more sessions. Importing the same log again adds only
        turns that are new. Send the file as `file` in a form, or as the raw request body.

        A small log (up to 256 KiB) is usually imported at once: the response is 200, and its sessions are
        final. Otherwise, the response is 202, and a worker imports the log in the background; poll
        `imports/{id}/` until `state` is neither `pending` nor `running`."""
        with opened_upload(call) as upload:
            is_small = upload.size <= SMALL_BYTES
            job = jobs.import_job_create(
                project=call.project,
                name=upload.name,
                file=upload.file,
                format=choice_param(call, "format", IMPORTERS) or "",
                is_dispatched=not is_small,
            )
        if is_small:
            import_step(job_id=job.pk, seconds=SMALL_SECONDS)
            job.refresh_from_db()
        _raise_if_failed(job)
        address = reverse("api:import", args=[job.pk])
        status = 202 if job.state in ImportJob.OPEN else 200
        return json_response(_detail_json(job), status=status, headers={"Location": address})


class ImportView(Endpoint):
    @operation("imports_get", "Retrieve an import", serializers.ImportJobDetail)
    def get(self, call: ApiCall, import_id: str) -> HttpResponse:
        """Returns the progress of an import and its results so far."""
        return json_response(_detail_json(_job_or_404(call, import_id)))

    @operation(
        "imports_change",
        "Cancel an import",
        serializers.ImportJobDetail,
        request=serializers.ImportChange,
        errors=(409,),
    )
    def patch(self, call: ApiCall, import_id: str) -> HttpResponse:
        """Ends an import with `{"state": "cancelled"}`. Sessions that were already imported are kept, and a
        long session may be imported in part. Importing the log again adds the rest."""
        job = _job_or_404(call, import_id)
        call.validated(serializers.ImportChange)
        try:
            return json_response(_detail_json(jobs.import_job_cancel(job=job)))
        except jobs.WrongState as error:
            raise Conflict("import_ended", about("state", error), param="state") from None


class ImportSessions(Endpoint):
    @operation(
        "imports_sessions",
        "List the sessions of an import",
        serializers.ImportedSessionList,
        parameters=paging(),
    )
    def get(self, call: ApiCall, import_id: str) -> HttpResponse:
        """Returns the result of the import for each session so far, in the order of the log."""
        job, limit = _job_or_404(call, import_id), limit_param(call)
        rows = import_job_sessions(job, after=number_cursor(call), limit=limit + 1)
        return json_response(page_json(rows, limit, _session_json, lambda row: [row.ordinal]))


def _raise_if_failed(job: ImportJob) -> None:
    """Report the failure of a log that was imported within the request."""
    if job.state != ImportJob.State.FAILED:
        return
    if job.error_code == "unknown_format":
        raise InvalidRequest(job.error_code, job.error, status=422)
    if job.error_code == "import_conflict":
        raise Conflict(job.error_code, job.error)
    raise ApiError("internal_error", f"The import failed: {job.error}")


def _job_or_404(call: ApiCall, name: str) -> ImportJob:
    rows = ImportJob.objects.filter(project=call.principal.project_id)
    return row_or_404(rows, name, kind="import")


def _job_json(job: ImportJob) -> dict[str, Any]:
    return {
        "id": job.pk,
        "state": job.state,
        "name": job.name,
        "format": job.format or None,
        "size": job.size,
        "progress": {
            "sessions": job.sessions_done,
            "sessions_total": job.sessions_total,
            "messages": job.messages_done,
            "messages_total": job.messages_total,
        },
        "error": {"code": job.error_code, "message": job.error} if job.error_code else None,
        "created_at": job.created_at,
        "finished_at": job.finished_at,
    }


def _detail_json(job: ImportJob) -> dict[str, Any]:
    rows = import_job_sessions(job, limit=_SHOWN_SESSIONS)
    return _job_json(job) | {
        "sessions": [_session_json(row) for row in rows],
        "damage_count": job.damage_count,
        "damages": job.damages,
    }


def _session_json(row: ImportJobSession) -> dict[str, Any]:
    return {
        "id": row.session_id,
        "external_id": row.external_id,
        "state": row.state,
        "turns": row.turns,
        "messages": row.messages,
        "reason": row.reason or None,
        "redacted": [{"kind": kind, "count": count} for kind, count in row.redacted.items()],
    }
