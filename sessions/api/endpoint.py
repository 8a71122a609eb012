"""Base class of all API endpoints: authentication, scopes, rate limits, request bodies and responses.

Endpoints are DRF views so that drf-spectacular can document them, but `Endpoint` dispatches requests
itself: DRF's request parsing, content negotiation and rendering take longer than a whole push.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any, ClassVar
from uuid import uuid4

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.request import UnreadablePostError
from psycopg.errors import QueryCanceled, ReadOnlySqlTransaction
from rest_framework.parsers import JSONParser
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from accounts.actors import Actor
from accounts.models import Project, Scope
from compaction.deadline import OutOfTime
from sessions.api import ratelimit
from sessions.api.auth import Principal, authenticate
from sessions.api.errors import (
    ApiError,
    InvalidRequest,
    NotAllowed,
    NotFound,
    NotSupported,
    Unavailable,
    error_response,
    sentence,
    store_unavailable,
    unknown_field,
)
from sessions.api.serializers.validation import validated
from sessions.models import AgentSession, Webhook
from sessions.store.blobs import StorageUnavailable
from sessions.store.bodies import json_bytes
from sessions.store.postgres import is_reference_lost
from sessions.store.rawjson import BadJson, TooDeep, read_object

log = logging.getLogger(__name__)

#: Media type of JSON Lines.
JSON_LINES = "application/x-ndjson"

_DELETED = "The project, or an object that the request names, was deleted during the request."

_JSON_TYPES = frozenset({"application/json", "application/merge-patch+json", ""})


class ApiCall:
    """An authenticated API request."""

    def __init__(self, request: HttpRequest, principal: Principal) -> None:
        self.request = request
        self.principal = principal

    @property
    def actor(self) -> Actor:
        return Actor(api_key_id=self.principal.key_id)

    @cached_property
    def project(self) -> Project:
        return Project.objects.get(pk=self.principal.project_id)

    @property
    def query(self) -> QueryDict:
        return self.request.GET

    @cached_property
    def raw(self) -> bytes:
        """The body's bytes. Raises `InvalidRequest` if its media type is wrong or it is too large."""
        if self.request.content_type not in _JSON_TYPES:
            raise InvalidRequest("unsupported_media_type", "Send the body as `application/json`.", status=415)
        refuse_compressed(self.request)
        return body_of(self.request)

    @cached_property
    def body(self) -> dict[str, Any]:
        """The body's JSON object, empty if there is no body. Raises `InvalidRequest`."""
        try:
            return read_object(self.raw) if self.raw else {}
        except TooDeep as error:
            raise InvalidRequest("too_deep", sentence(error)) from None
        except BadJson as error:
            raise InvalidRequest("bad_json", sentence(error)) from None

    def validated(self, serializer: type[Serializer[Any]]) -> dict[str, Any]:
        """Return the body, validated. Raises `InvalidRequest` for the first invalid field."""
        return validated(serializer, self.body)


class Endpoint(APIView):
    """Base class of API endpoints. `scopes` maps each HTTP method to the scope it requires."""

    scopes: ClassVar[Mapping[str, str]] = {
        "GET": Scope.READ,
        **dict.fromkeys(("POST", "PUT", "PATCH"), Scope.PUSH),
        "DELETE": Scope.ADMIN,
    }
    #: For the schema only: bodies are JSON.
    parser_classes = (JSONParser,)
    #: Methods whose handler verifies in its first SQL statement that the key is still valid.
    checks_key_itself: ClassVar[Collection[str]] = ()

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return self._handle(request, kwargs)
        except ApiError as error:
            return error.response()
        except AgentSession.DoesNotExist:
            return NotFound("The session was deleted during the request.").response()
        except (Project.DoesNotExist, Webhook.DoesNotExist):
            return NotFound(_DELETED).response()
        except OutOfTime:
            return _too_late()
        except StorageUnavailable:
            return store_unavailable("object storage")
        except (OperationalError, InterfaceError) as error:
            return _too_late() if isinstance(error.__cause__, QueryCanceled) else store_unavailable()
        except Exception as error:
            if isinstance(error.__cause__, ReadOnlySqlTransaction):  # a standby, or the disk is full
                return store_unavailable()
            if is_reference_lost(error):
                return NotFound(_DELETED).response()
            # Do not expose internal details: log them and return only the request ID.
            request_id = uuid4().hex[:12]
            log.exception("request %s failed: %s %s", request_id, request.method, request.path)
            message = f"Something went wrong on the server. Request ID: {request_id}"
            return error_response(500, "internal_error", "internal_error", message)

    def _handle(self, request: HttpRequest, kwargs: dict[str, Any]) -> HttpResponse:
        # The web server discards the body of the response to a HEAD request.
        method = "GET" if request.method == "HEAD" else request.method or ""
        handler = getattr(self, method.lower(), None) if method in self.scopes else None
        if handler is None:
            allowed = ", ".join(name for name in self.scopes if hasattr(self, name.lower()))
            raise NotSupported(
                "method_not_allowed", f"This URL supports only {allowed}.", headers={"Allow": allowed}
            )
        principal = authenticate(request, trust_cache=method in self.checks_key_itself)
        ratelimit.check(principal)
        scope = self.scopes[method]
        if scope not in principal.scopes:
            raise NotAllowed("missing_scope", f"The API key lacks the scope `{scope}`.")
        if "\0" in request.path:
            raise NotFound("URLs must not contain NUL characters.")
        _refuse_unknown(request, getattr(handler, "query_names", ()))
        response: HttpResponse = handler(ApiCall(request, principal), **kwargs)
        return response


def _too_late() -> HttpResponse:
    """Respond to a request that was stopped at its deadline."""
    message = "The request took too long and was stopped. Its changes were not stored."
    return Unavailable("deadline_exceeded", message).response()


def body_of(request: HttpRequest) -> bytes:
    """Return the body. Raises `InvalidRequest` if it is too large or incomplete."""
    limit = settings.CONTEXTAPP_MAX_BODY_BYTES
    length = request.META.get("CONTENT_LENGTH") or "0"
    try:
        if length.isdigit() and int(length) > limit:
            raise RequestDataTooBig
        return request.body
    except RequestDataTooBig:
        raise InvalidRequest(
            "body_too_large", f"The body exceeds the limit of {limit:,} bytes.", status=413
        ) from None
    except UnreadablePostError:
        raise incomplete_body() from None


def incomplete_body() -> InvalidRequest:
    """Return the error for a connection that closed during the request."""
    return InvalidRequest("bad_json", "The connection closed before the whole body was received.")


def refuse_compressed(request: HttpRequest) -> None:
    """Raise `InvalidRequest` if the body is compressed: the server does not decompress bodies."""
    if request.META.get("HTTP_CONTENT_ENCODING", "identity").lower() != "identity":
        raise InvalidRequest(
            "unsupported_media_type",
            "Compressed request bodies are not supported. Send the body uncompressed.",
            status=415,
        )


def _refuse_unknown(request: HttpRequest, known: Collection[str]) -> None:
    """Reject unknown query parameters: a misspelled filter would otherwise return everything."""
    try:
        names = list(request.GET)
    except SuspiciousOperation:
        raise InvalidRequest("unknown_field", "The URL has too many parameters.") from None
    for name in names:
        if name not in known:
            raise unknown_field(name, known, kind="parameter")


def json_response(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """Respond with `value` as JSON. Bytes are sent unchanged: they are JSON already."""
    content = value if isinstance(value, bytes) else json_bytes(value)
    response = HttpResponse(content, status=status, content_type="application/json", headers=headers)
    response["Content-Length"] = str(len(content))
    return response
