"""The page of an error that no view handles."""

from __future__ import annotations

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from compaction.deadline import OutOfTime

_UNAVAILABLE = (OperationalError, InterfaceError, OutOfTime)

#: After how many seconds clients may try again if the database is unavailable.
_RETRY_SECONDS = 5


def server_error(request: HttpRequest) -> HttpResponse:
    """Return status 503 if the database is unavailable or the deadline of the request has passed, else 500.

    Django calls this while it handles the exception.
    """
    if isinstance(sys.exc_info()[1], _UNAVAILABLE):
        response = render(request, "503.html", status=503)
        response.headers["Retry-After"] = str(_RETRY_SECONDS)
        return response
    return render(request, "500.html", status=500)
