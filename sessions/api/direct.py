"""Pushes without Django's request handling, on the event loop of the web server.

Creating a request, passing it through the middleware and handing it to a thread and back take longer than
storing a turn. This module handles the usual push: small, valid, from a known key to a known session, and
without a compaction. The endpoint `sessions.api.turns` handles every other request, and all errors.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.middleware.security import SecurityMiddleware

from accounts.models import Scope
from sessions.api import ratelimit
from sessions.api.auth import principal_cached
from sessions.api.errors import ApiError, database_unavailable
from sessions.api.metrics import request_observe
from sessions.api.turns import push_read
from sessions.selectors.lookups import session_route_cached
from sessions.services.memory.update_requests import memory_update_request
from sessions.services.push.turns import turn_push_direct
from sessions.services.push.values import Target
from sessions.store.loop_connections import LoopConnections
from sessions.store.rawjson import BadJson, read_object

log = logging.getLogger(__name__)

#: Status, headers and content.
Answer = tuple[int, list[tuple[str, str]], bytes]

#: Sessions whose names need no decoding.
_PATH = re.compile(r"/api/v1/sessions/([\w.~:@-]+)/turns/", re.ASCII)
_ROUTE = "api/v1/sessions/<str:session_id>/turns/"

#: Larger bodies are left to a thread: counting their tokens would delay the other requests (bytes).
LARGEST = 32_768

#: Connections to the database per process.
CONNECTIONS = 4


class DirectPushes:
    """Handles pushes on one event loop."""

    def __init__(self) -> None:
        self._connections = LoopConnections(_connect, size=CONNECTIONS)

    async def respond(self, environ: Mapping[str, Any], body: bytes) -> Answer | None:
        """Return the answer to a request, or None if Django has to handle it; nothing was stored then."""
        name = _session_name(environ)
        if name is None or not 0 < len(body) <= LARGEST:
            return None
        began = time.perf_counter()
        try:
            content = await self._push(environ, body, name)
            if content is None:
                return None
            status = 201
        except (BadJson, ApiError):
            return None  # the endpoint responds with the error
        except psycopg.Error:
            response = database_unavailable()
            status, content = response.status_code, response.content
        request_observe("POST", _ROUTE, status, time.perf_counter() - began)
        return status, _headers(content, is_secure=_is_secure(environ)), content

    def close(self) -> None:
        """Close the connections to the database."""
        self._connections.close()

    async def _push(self, environ: Mapping[str, Any], body: bytes, name: str) -> bytes | None:
        principal = principal_cached(environ.get("HTTP_AUTHORIZATION", ""))
        if principal is None or Scope.PUSH not in principal.scopes:
            return None
        route = session_route_cached(project_id=principal.project_id, name=name)
        if route is None or route.format is None or not ratelimit.take_reserved(principal):
            return None
        target = Target(key_id=principal.key_id, project_id=principal.project_id, session_id=route.id)
        content = None
        try:
            push = push_read(
                body, read_object(body), headers=environ, principal=principal, format=route.format
            )
            content = await turn_push_direct(self._connections, target, push)
        finally:
            if content is None:
                ratelimit.give_back(principal)  # the endpoint counts the request
        if content is not None and principal.upkeep:
            memory_update_request(route.id)
        return content


def _session_name(environ: Mapping[str, Any]) -> str | None:
    """Return the session's name if the request is a push that needs nothing special."""
    if environ["REQUEST_METHOD"] != "POST" or environ["QUERY_STRING"]:
        return None
    if environ.get("CONTENT_TYPE") != "application/json" or "HTTP_CONTENT_ENCODING" in environ:
        return None
    match = _PATH.fullmatch(environ["PATH_INFO"])
    return match[1] if match else None


def _is_secure(environ: Mapping[str, Any]) -> bool:
    proxy = settings.SECURE_PROXY_SSL_HEADER
    return proxy is not None and environ.get(proxy[0]) == proxy[1]


def _headers(content: bytes, *, is_secure: bool) -> list[tuple[str, str]]:
    return [("Content-Length", str(len(content))), *_constant_headers(is_secure)]


@cache
def _constant_headers(is_secure: bool) -> list[tuple[str, str]]:
    """Return the content type, and the headers that Django's middleware adds to each response."""
    request = HttpRequest()
    if is_secure:
        name, value = settings.SECURE_PROXY_SSL_HEADER
        request.META[name] = value
    middleware = SecurityMiddleware(lambda _: HttpResponse())
    response = middleware.process_response(request, HttpResponse(content_type="application/json"))
    return list(response.items())


def _connect() -> psycopg.Connection[Any]:
    """Open a connection with the parameters of Django's.

    Its statements find rows by key, so that the server need not plan them again for each execution.
    """
    opened = psycopg.Connection.connect(**{**connection.get_connection_params(), "autocommit": True})
    opened.execute("SET plan_cache_mode = force_generic_plan")
    return opened
