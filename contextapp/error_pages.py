"""The pages of errors that no view handles."""

from __future__ import annotations

import sys
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFilesSent
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.middleware.csrf import REASON_BAD_ORIGIN
from django.shortcuts import render
from django.template.loader import render_to_string
from psycopg.errors import ReadOnlySqlTransaction

from compaction.deadline import OutOfTime

_UNAVAILABLE = (OperationalError, InterfaceError, OutOfTime)

#: After how many seconds clients may try again if the database is unavailable.
_RETRY_SECONDS = 5

#: The beginning of the reason for which Django rejects a form of another origin.
_BAD_ORIGIN = REASON_BAD_ORIGIN.partition("%s")[0]


class FormUrlPages:
    """Explain the URLs of forms to a browser that opens them, instead of returning an empty page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if isinstance(response, HttpResponseNotAllowed) and request.method == "GET":
            response.content = render_to_string("405.html", request=request)
        return response


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return status 413 if the body or the number of files exceeds its limit, else 400."""
    if isinstance(exception, RequestDataTooBig):
        return render(request, "413.html", {"limit": settings.CONTEXTAPP_MAX_BODY_BYTES}, status=413)
    if isinstance(exception, TooManyFilesSent):
        return render(request, "413.html", {"files": settings.DATA_UPLOAD_MAX_NUMBER_FILES}, status=413)
    return render(request, "400.html", status=400)


def server_error(request: HttpRequest) -> HttpResponse:
    """Return status 503 if the database is unavailable or the deadline of the request has passed, else 500.

    Django calls this while it handles the exception.
    """
    error = sys.exc_info()[1]
    is_read_only = error is not None and isinstance(error.__cause__, ReadOnlySqlTransaction)
    if is_read_only or isinstance(error, _UNAVAILABLE):
        response = render(request, "503.html", status=503)
        response.headers["Retry-After"] = str(_RETRY_SECONDS)
        return response
    return render(request, "500.html", status=500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Return status 403. If the origin was rejected, the page names the settings of the proxy to check."""
    context = {}
    if reason.startswith(_BAD_ORIGIN):
        context = {
            "sent_from": request.headers["Origin"],
            "expected": f"{request.scheme}://{request.get_host()}",
        }
    return render(request, "403_csrf.html", context, status=403)
