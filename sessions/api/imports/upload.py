"""The uploaded file of a request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParserError
from django.http.request import UnreadablePostError

from sessions.api.endpoint import ApiCall, incomplete_body, refuse_compressed
from sessions.api.errors import InvalidField, InvalidRequest
from sessions.services.imports.jobs import EmptyUpload
from sessions.services.imports.uploads import Readable


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An uploaded file, which has not been read yet. `name` is empty if the request contains none."""

    name: str
    file: Readable
    size: int


@contextmanager
def opened_upload(call: ApiCall) -> Iterator[Upload]:
    """Open `file` of a form, or the request body. Errors while it is read are raised as `InvalidRequest`."""
    request = call.request
    refuse_compressed(request)
    text = request.META.get("CONTENT_LENGTH") or "0"
    length = int(text) if text.isdigit() else 0
    if length > settings.CONTEXTAPP_MAX_IMPORT_BYTES:
        raise _too_large()
    try:
        if request.content_type == "multipart/form-data":
            upload = _form_file(request)
        else:
            upload = Upload(name="", file=request, size=length)
        yield Upload(name=_name(call, upload.name), file=upload.file, size=upload.size)
    except RequestDataTooBig:
        raise _too_large() from None
    except (MultiPartParserError, SuspiciousOperation) as error:
        raise InvalidRequest("bad_json", f"The multipart form could not be parsed: {error}") from None
    except UnreadablePostError:
        raise incomplete_body() from None
    except EmptyUpload:
        raise _missing() from None


def _form_file(request: HttpRequest) -> Upload:
    file = request.FILES.get("file")
    if file is None or not file.size:
        raise _missing()
    return Upload(name=file.name or "", file=file, size=file.size)


def _name(call: ApiCall, given: str) -> str:
    name = call.query.get("name") or given
    if len(name) > 200 or (name and not name.isprintable()):
        raise InvalidField("name", "`name` must have 1 to 200 printable characters.")
    return name


def _missing() -> InvalidRequest:
    return InvalidRequest("missing_field", "`file` is missing or empty.", param="file")


def _too_large() -> InvalidRequest:
    limit = settings.CONTEXTAPP_MAX_IMPORT_BYTES
    return InvalidRequest(
        "body_too_large",
        f"The file exceeds the limit of {limit:,} bytes. Use `manage.py import_sessions` for larger files.",
        status=413,
    )
