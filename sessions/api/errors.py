"""API errors: every error has the shape `{"error": {"type", "code", "message", "param"}}`.

ApiError
├── InvalidRequest   400, 408, 413, 415, 422, 428  the request is invalid
│   └── InvalidField 400                           a field or parameter has an invalid type or value
├── NotAuthenticated 401                           no valid API key
├── NotAllowed       403                           the key lacks the scope
├── NotFound         404                           the object does not exist in the key's project
├── NotSupported     405                           the URL does not support the method
├── Conflict         409, 412                      the current state does not allow the request
├── RateLimited      429                           the key has exceeded its rate limit
└── Unavailable      503                           a backing service is down or read-only
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.urls import is_valid_path
from django.views.defaults import page_not_found

from sessions.store.bodies import json_bytes

log = logging.getLogger(__name__)


class ApiError(Exception):
    """An error response. `code` is stable; `message` is for people and may change."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "internal_error"

    def __init__(
        self,
        code: str,
        message: str,
        *,
        param: str | None = None,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param
        self.http_status = status or self.status
        self.headers = headers or {}

    def response(self) -> HttpResponse:
        return error_response(self.http_status, self.type, self.code, self.message, self.param, self.headers)


class InvalidRequest(ApiError):
    status = 400
    type = "invalid_request"


class InvalidField(InvalidRequest):
    """A field or parameter has an invalid type or value. `name` is None if several could be meant."""

    def __init__(self, name: str | None, message: str) -> None:
        super().__init__("invalid_field", message, param=name)


class NotAuthenticated(ApiError):
    status = 401
    type = "not_authenticated"


class NotAllowed(ApiError):
    status = 403
    type = "not_allowed"


class NotFound(ApiError):
    status = 404
    type = "not_found"

    def __init__(self, message: str, *, code: str = "not_found", param: str | None = None) -> None:
        super().__init__(code, message, param=param)


class NotSupported(ApiError):
    status = 405
    type = "not_supported"


class Conflict(ApiError):
    status = 409
    type = "conflict"


class RateLimited(ApiError):
    status = 429
    type = "rate_limited"


class Unavailable(ApiError):
    status = 503
    type = "unavailable"


def store_unavailable(name: str = "database") -> HttpResponse:
    """Log the current exception, and return the response to a request that needs the named store."""
    log.exception("the %s is unavailable", name)
    error = Unavailable(
        "unavailable",
        f"The {name} is unavailable. Try again in a few seconds.",
        headers={"Retry-After": "2"},
    )
    return error.response()


def unknown_field(
    name: str, known: Collection[str], *, within: str = "", kind: str = "field"
) -> InvalidRequest:
    """Return the error for a field or parameter that is not among `known`.

    `within` is the path of the object that contains the field.
    """
    path = f"{within}.{name}" if within else name
    return InvalidRequest("unknown_field", f"Unknown {kind} `{path}`. {supported(known)}", param=path)


def supported(names: Collection[str]) -> str:
    """Return the sentence that lists the supported fields or parameters."""
    return f"Supported: {', '.join(f'`{name}`' for name in sorted(names)) or 'none'}."


def sentence(error: Exception | str) -> str:
    """Return the message of an error from another layer as a sentence."""
    text = str(error)
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def about(field: str, error: Exception | str) -> str:
    """Return the message of an error from another layer as a sentence about `field`."""
    text = str(error).removeprefix(f"{field}: ").rstrip(".")
    return f"`{field}` {text}." if text.startswith("must ") else f"`{field}`: {text}."


def error_response(
    status: int,
    type: str,
    code: str,
    message: str,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> HttpResponse:
    body: dict[str, Any] = {"error": {"type": type, "code": code, "message": message, "param": param}}
    return HttpResponse(json_bytes(body), status=status, content_type="application/json", headers=headers)


def unknown_url(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Respond to a URL that matches no route: as JSON where only programs send requests, else as a page.

    `/v1/` is where a provider's SDK sends its requests if its base URL is that of the web server.
    """
    if request.path.startswith("/gateway/"):
        return NotFound(
            "The gateway listens on a separate port. contextapp prints the URL when it starts."
        ).response()
    if not request.path.startswith(("/api/", "/v1/")):
        return page_not_found(request, exception)
    slashed = f"{request.path_info}/"
    if not request.path_info.endswith("/") and is_valid_path(slashed):
        return NotFound(f"URLs end with a slash: {slashed}").response()
    return NotFound("No such URL. The API is at /api/v1/, and /api/docs/ lists its endpoints.").response()
