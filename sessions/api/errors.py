"""The one shape of every error: `{"error": {"type", "code", "message", "param"}}`, and every code there is.

ApiError
├── InvalidRequest   400, 413, 415, 422  the request itself is wrong
├── NotAuthenticated 401                 no key, or none that is live
├── NotAllowed       403                 the key lacks the scope
├── NotFound         404                 no such thing in the key's project
├── NotSupported     405, 406            the address does not take this method
├── Conflict         409, 412            the state does not allow it
├── RateLimited      429                 too many requests of one key
└── Unavailable      503                 a part of the service is down
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.views.defaults import page_not_found

from sessions.store.bodies import json_bytes


class ApiError(Exception):
    """An answer that is not the one asked for. `code` is stable; `message` is for people."""

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


class NotAuthenticated(ApiError):
    status = 401
    type = "not_authenticated"


class NotAllowed(ApiError):
    status = 403
    type = "not_allowed"


class NotFound(ApiError):
    status = 404
    type = "not_found"


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


#: Every code, for the documentation; a test holds the two together and that no other is raised.
CODES: Mapping[str, str] = {
    "bad_json": "the body is not JSON in UTF-8, or holds what JSON cannot (NaN, a lone surrogate)",
    "body_too_large": "the body is larger than the limit, which the message names",
    "too_many_messages": "one push brings more messages than the limit",
    "too_deep": "the JSON is nested deeper than the limit",
    "text_too_long": "one text is longer than the limit",
    "unsupported_media_type": "the body is not application/json, or compressed",
    "invalid_field": "a field has the wrong type or value; `param` names it",
    "missing_field": "a field is missing; `param` names it",
    "unknown_field": "a field or parameter that this call does not know; `param` names it",
    "secret_in_field": "a text that names something holds a secret, which could not be taken out",
    "invalid_cursor": "the cursor was not made by this call",
    "invalid_message": "a message cannot be one of the format; `param` names its index",
    "idempotency_mismatch": "the idempotency key was used before, with another body",
    "stale_turn": "another writer came first: `expected_turn` is not the session's next one",
    "session_exists": "a session of this id exists; `if_exists` says what to do",
    "not_authenticated": "no API key was sent, or it is unknown, expired or revoked",
    "missing_scope": "the API key lacks the scope that this call needs",
    "not_found": "there is no such thing in the key's project",
    "method_not_allowed": "the address does not take this method",
    "precondition_failed": "`If-Match` names another revision than the current one",
    "precondition_required": "the call needs `If-Match`",
    "compaction_open": "a compaction of this session is under way",
    "not_revertible": "the compaction is not applied, or a later one stands on it",
    "not_editable": "the prompt shows no recap of this compaction: it has none, or a later one stands on it",
    "unknown_format": "the file's format is none that is known",
    "import_conflict": "what is stored under this id is not what the file tells",
    "written_by_a_person": "a machine may not take out or reword what a person wrote in the memory",
    "memory_too_large": "the working memory would be larger than its limit",
    "unknown_tool": "no tool of this name",
    "rate_limited": "too many requests of this key; `Retry-After` says when to come back",
    "internal_error": "a fault of the server; it is logged under the id in the message",
    "unavailable": "the database or the broker does not answer",
}


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


def address_unknown(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The answer where no address matches: within the API in the API's own shape."""
    if request.path.startswith("/api/"):
        return NotFound("not_found", "there is no such address; /api/docs/ lists them").response()
    return page_not_found(request, exception)
