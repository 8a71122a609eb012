"""What every call shares: the key, its scope and rate, the body, the shape of answers and errors.

The calls are DRF views, so that drf-spectacular describes them and the browsable documentation shows
them, but they are dispatched here: DRF's own request, negotiation and rendering take longer than a whole
push does.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any, ClassVar
from uuid import uuid4

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.request import UnreadablePostError
from rest_framework.views import APIView

from accounts.models import Scope
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
)
from sessions.store.bodies import json_bytes
from sessions.store.rawjson import BadJson, TooDeep, read_object

log = logging.getLogger(__name__)

_JSON_TYPES = frozenset({"application/json", "application/merge-patch+json", ""})


class ApiCall:
    """One request to the API, with who sent it."""

    def __init__(self, request: HttpRequest, principal: Principal) -> None:
        self.request = request
        self.principal = principal

    @property
    def query(self) -> QueryDict:
        return self.request.GET

    @cached_property
    def raw(self) -> bytes:
        """The body's bytes. Raises `InvalidRequest` where it is no JSON by its header, or too large."""
        limit = settings.CONTEXTAPP_MAX_BODY_BYTES
        if self.request.content_type not in _JSON_TYPES:
            raise InvalidRequest("unsupported_media_type", "send the body as application/json", status=415)
        refuse_compressed(self.request)
        length = self.request.META.get("CONTENT_LENGTH") or "0"
        try:
            if length.isdigit() and int(length) > limit:
                raise RequestDataTooBig
            return self.request.body
        except RequestDataTooBig:
            raise InvalidRequest(
                "body_too_large", f"the body is larger than {limit:,} bytes", status=413
            ) from None
        except UnreadablePostError:
            raise InvalidRequest("bad_json", "the body ended before it was complete") from None

    @cached_property
    def body(self) -> dict[str, Any]:
        """The body's JSON object; an absent body is an empty one. Raises `InvalidRequest`."""
        try:
            return read_object(self.raw) if self.raw else {}
        except TooDeep as error:
            raise InvalidRequest("too_deep", str(error)) from None
        except BadJson as error:
            raise InvalidRequest("bad_json", str(error)) from None


class Endpoint(APIView):
    """A call of the API. `scopes` names, for each method, what the key must be allowed to do."""

    scopes: ClassVar[Mapping[str, str]] = {"GET": Scope.READ, "POST": Scope.PUSH, "DELETE": Scope.ADMIN}
    #: Methods whose handler itself makes sure, in its first statement, that the key still lives.
    checks_key_itself: ClassVar[Collection[str]] = ()

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return self._handle(request, kwargs)
        except ApiError as error:
            return error.response()
        except (OperationalError, InterfaceError):
            log.exception("the database does not answer")
            return Unavailable(
                "unavailable", "the database does not answer", headers={"Retry-After": "2"}
            ).response()
        except Exception:
            # The last line before a bare 500 page: log everything, tell the caller only where to look.
            fault = uuid4().hex[:12]
            log.exception("fault %s in %s %s", fault, request.method, request.path)
            return error_response(500, "internal_error", "internal_error", f"logged as fault {fault}")

    def _handle(self, request: HttpRequest, kwargs: dict[str, Any]) -> HttpResponse:
        # A HEAD is a GET whose body the web server keeps to itself.
        method = "GET" if request.method == "HEAD" else request.method or ""
        handler = getattr(self, method.lower(), None) if method in self.scopes else None
        if handler is None:
            allowed = ", ".join(name for name in self.scopes if hasattr(self, name.lower()))
            raise NotSupported(
                "method_not_allowed", f"this address takes {allowed}", headers={"Allow": allowed}
            )
        principal = authenticate(request, trust_cache=method in self.checks_key_itself)
        ratelimit.check(principal)
        scope = self.scopes[method]
        if scope not in principal.scopes:
            raise NotAllowed("missing_scope", f"the API key lacks the scope `{scope}`")
        if "\0" in request.path:
            raise NotFound("not_found", "no address has a NUL character")
        _refuse_unknown(request, handler.query_names)
        response: HttpResponse = handler(ApiCall(request, principal), **kwargs)
        return response


def refuse_compressed(request: HttpRequest) -> None:
    """Raises `InvalidRequest` where the body says that it is compressed: it would be read as it is."""
    if request.META.get("HTTP_CONTENT_ENCODING", "identity").lower() != "identity":
        raise InvalidRequest("unsupported_media_type", "send the body without compression", status=415)


def _refuse_unknown(request: HttpRequest, known: Collection[str]) -> None:
    """A filter that is misspelt would otherwise answer with everything."""
    for name in request.GET:
        if name not in known:
            takes = ", ".join(f"`{each}`" for each in sorted(known)) or "none"
            raise InvalidRequest(
                "unknown_field", f"`{name}` is no parameter of this call; it takes {takes}", param=name
            )


def json_response(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """`value` as JSON; bytes are JSON already."""
    content = value if isinstance(value, bytes) else json_bytes(value)
    response = HttpResponse(content, status=status, content_type="application/json", headers=headers)
    response["Content-Length"] = str(len(content))
    return response
