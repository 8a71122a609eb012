"""Exceptions of the client.

ContextAppError
├── ConnectionFailed     no response after all retries
├── UnexpectedResponse   the response is not from contextapp, for example a proxy's error page, or incomplete
├── InvalidSignature     a webhook's request was not signed with the secret, or is too old
└── ApiError             contextapp returned an error; `code` is stable, `message` is for humans
    ├── InvalidRequest   400, 408, 413, 415, 422, 428  the request is invalid; `param` names the field
    ├── NotAuthenticated 401                           no valid API key
    ├── NotAllowed       403                           the API key lacks the scope
    ├── NotFound         404                           the object does not exist in the key's project
    ├── NotSupported     405                           the URL does not support the method
    ├── Conflict         409, 412                      the current state does not allow the request
    ├── RateLimited      429                           the API key exceeded its rate limit
    ├── ServerError      500                           the server failed and logged the error
    └── Unavailable      503                           a backing service is down or read-only
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar


class ContextAppError(Exception):
    """Base class of all exceptions of this package."""


class ConnectionFailed(ContextAppError):
    """No response. A push may have been stored: pushing the same messages again is safe (`Session.push`)."""


class UnexpectedResponse(ContextAppError):
    """The response is not from contextapp, or is incomplete. `status` is that of an error, or None."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class InvalidSignature(ContextAppError):
    """A request to a webhook's URL that contextapp did not send, or that is too old."""


class ApiError(ContextAppError):
    """An error returned by contextapp. `retry_after` is in seconds, or None."""

    type: ClassVar[str] = ""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(status, code, message)  # the arguments with which `pickle` and `copy` rebuild it
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.retry_after = retry_after

    def __str__(self) -> str:
        where = f" ({self.param})" if self.param and self.param not in self.message else ""
        return f"{self.status} {self.code}: {self.message}{where}"


class InvalidRequest(ApiError):
    type = "invalid_request"


class NotAuthenticated(ApiError):
    type = "not_authenticated"


class NotAllowed(ApiError):
    type = "not_allowed"


class NotFound(ApiError):
    type = "not_found"


class NotSupported(ApiError):
    type = "not_supported"


class Conflict(ApiError):
    type = "conflict"


class RateLimited(ApiError):
    type = "rate_limited"


class ServerError(ApiError):
    type = "internal_error"


class Unavailable(ApiError):
    type = "unavailable"


_BY_TYPE: Mapping[str, type[ApiError]] = {kind.type: kind for kind in ApiError.__subclasses__()}


def error_from_response(status: int, data: bytes, headers: Mapping[str, str]) -> ContextAppError:
    """Return the exception for a response with status 400 or above."""
    try:
        error: dict[str, Any] = json.loads(data)["error"]
        kind = _BY_TYPE.get(error["type"], ApiError)
        return kind(
            status,
            error["code"],
            error["message"],
            param=error.get("param"),
            retry_after=seconds_until_retry(headers),
        )
    except (ValueError, KeyError, TypeError):
        start = data[:200].decode(errors="replace")
        message = f"unexpected error response with status {status}: {start!r}"
        return UnexpectedResponse(message, status=status)


def seconds_until_retry(headers: Mapping[str, str]) -> float | None:
    """Return the value of `Retry-After`, in seconds or as a date, or None."""
    text = headers.get("Retry-After", "")
    try:
        seconds = float(text) if text.isdigit() else parsedate_to_datetime(text).timestamp() - time.time()
    except ValueError:
        return None
    return max(0.0, seconds)
