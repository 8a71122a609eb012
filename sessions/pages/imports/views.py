"""Upload a log, and follow or cancel its import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from importers.registry import IMPORTERS
from sessions.models import ImportJob
from sessions.pages.access import Viewer, page_or_fragment, viewer_of, writer_of
from sessions.pages.figures import file_size
from sessions.pages.settings.common import PlainForm
from sessions.selectors.imports import import_job_sessions, import_jobs_newest, import_jobs_open
from sessions.services.imports import jobs

_MAX_JOBS, _MAX_SESSIONS = 50, 200


class LogInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class LogFiles(forms.FileField):
    """One or more uploaded files, each checked like a single one."""

    widget = LogInput

    def clean(self, data: Any, initial: Any = None) -> Sequence[UploadedFile[Any]]:
        return [super(LogFiles, self).clean(file, initial) for file in data or [None]]


class UploadForm(PlainForm):
    file = LogFiles(
        label="Log files",
        max_length=200,
        help_text="Uncompressed JSON or JSONL. You can also drop files here.",
    )
    format = forms.ChoiceField(
        required=False,
        choices=[("", "Detect from the content"), *((name, each.label) for name, each in IMPORTERS.items())],
    )

    def clean_file(self) -> Sequence[UploadedFile[Any]]:
        files: Sequence[UploadedFile[Any]] = self.cleaned_data["file"]
        limit = settings.CONTEXTAPP_MAX_IMPORT_BYTES
        if sum(file.size or 0 for file in files) > limit:
            raise forms.ValidationError(f"The upload exceeds the limit of {file_size(limit)}.")
        for file in files:
            if _is_compressed(file):
                raise forms.ValidationError(
                    f"{file.name} is compressed. Decompress it first, or import it with the command below."
                )
        return files


def _is_compressed(file: UploadedFile[Any]) -> bool:
    """Return whether a file begins like a gzip, Zstandard or zip file."""
    begin: bytes = file.read(4)
    file.seek(0)
    return begin.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"))


@require_http_methods(["GET", "HEAD", "POST"])
def imports(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the upload form and the newest imports. A POST starts an import of each file."""
    if request.method != "POST":
        return _page(request, viewer_of(request, slug), UploadForm())
    viewer = writer_of(request, slug, action="import a log")
    form = UploadForm(request.POST, files=request.FILES)
    if not form.is_valid():
        return _page(request, viewer, form, status=422)
    format = form.cleaned_data["format"]
    started = [
        jobs.import_job_create(project=viewer.project, name=file.name, file=file, format=format)
        for file in form.cleaned_data["file"]
    ]
    if len(started) > 1:
        return redirect("imports", slug=slug)
    return redirect("imports_job", slug=slug, job=started[0].pk)


@require_safe
def import_job(request: HttpRequest, slug: str, job: UUID) -> HttpResponse:
    """Show an import. htmx polls it until it has ended."""
    viewer = viewer_of(request, slug)
    found = get_object_or_404(ImportJob, project=viewer.project, pk=job)
    sessions = import_job_sessions(found, limit=_MAX_SESSIONS + 1)
    context: dict[str, Any] = {
        "viewer": viewer,
        "job": found,
        "is_open": found.state in ImportJob.OPEN,
        "sessions": sessions[:_MAX_SESSIONS],
        "has_more": len(sessions) > _MAX_SESSIONS,
    }
    return page_or_fragment(request, "imports/job.html", "imports/_job.html", context)


@require_POST
def import_cancel(request: HttpRequest, slug: str, job: UUID) -> HttpResponse:
    viewer = writer_of(request, slug, action="cancel an import")
    try:
        jobs.import_job_cancel(job=get_object_or_404(ImportJob, project=viewer.project, pk=job))
    except jobs.WrongState:
        messages.error(request, "The import has already ended.")
    return redirect("imports_job", slug=slug, job=job)


def _page(request: HttpRequest, viewer: Viewer, form: UploadForm, *, status: int = 200) -> HttpResponse:
    open_count = import_jobs_open(viewer.project.pk)
    context = {
        "viewer": viewer,
        "form": form,
        "jobs": import_jobs_newest(project_id=viewer.project.pk, limit=_MAX_JOBS),
        "open_count": open_count,
        "limit": settings.CONTEXTAPP_MAX_IMPORT_BYTES,
        "files": settings.DATA_UPLOAD_MAX_NUMBER_FILES,
    }
    return page_or_fragment(request, "imports/page.html", "imports/_jobs.html", context, status=status)
