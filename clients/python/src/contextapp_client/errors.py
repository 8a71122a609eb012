"""What can go wrong in a call.

ContextAppError
├── ConnectionFailed     no answer came, all retries included
├── BadAnswer            what came is not an answer of contextapp: a proxy's page, or cut off
└── ApiError             contextapp said no; `code` is stable, `message` is for people
    ├── InvalidRequest   400, 413, 415, 422  the request itself is wrong; `param` names the field
    ├── NotAuthenticated 401                 no key, or none that is live
    ├── NotAllowed       403                 the key lacks the scope
    ├── NotFound         404                 no such thing in the key's project
    ├── NotSupported     405, 406            the address does not take this method
    ├── Conflict         409, 412            the state does not allow it, say another writer came first
    ├── RateLimited      429                 too many requests of one key
    ├── ServerFault      500                 a fault of the server, logged there
    └── Unavailable      503                 a part of the service is down
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar


class ContextAppError(Exception):
    """Everything that this package raises of itself."""


class ConnectionFailed(ContextAppError):
    """No answer came. A push may have been stored: pushing again with its key is safe."""


class BadAnswer(ContextAppError):
    """An answer came that contextapp does not give."""


class ApiError(ContextAppError):
    """contextapp's own refusal. `retry_after` is in seconds, None where the answer names no time."""

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
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.retry_after = retry_after


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


class ServerFault(ApiError):
    type = "internal_error"


class Unavailable(ApiError):
    type = "unavailable"


_BY_TYPE: Mapping[str, type[ApiError]] = {kind.type: kind for kind in ApiError.__subclasses__()}


def error_of(status: int, data: bytes, headers: Mapping[str, str]) -> ContextAppError:
    """The error that an answer of status 400 and above tells of."""
    try:
        told: dict[str, Any] = json.loads(data)["error"]
        kind = _BY_TYPE.get(told["type"], ApiError)
        return kind(
            status,
            told["code"],
            told["message"],
            param=told.get("param"),
            retry_after=_seconds(headers.get("Retry-After")),
        )
    except (ValueError, KeyError, TypeError):
        start = data[:200].decode(errors="replace")
        return BadAnswer(f"status {status} without contextapp's error shape: {start!r}")


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isdigit() else None
