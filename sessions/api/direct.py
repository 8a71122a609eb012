"""Pushes and fetches without Django's request handling, on the event loop of the web server.

Creating a request, passing it through the middleware and handing it to a thread and back take longer than
storing a turn or reading a prompt. This module handles the usual push (small, valid, from a known key to a
known session, without a compaction) and the usual fetch (of the session's own prompt, which grew since the
last fetch or is unchanged). The endpoints `sessions.api.turns` and `sessions.api.prompt` handle every other
request, and all errors.
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
from compaction.dialects import get_dialect
from compaction.provider_engine import is_compacted_by_provider
from sessions.api import ratelimit
from sessions.api.auth import Principal, principal_cached
from sessions.api.errors import ApiError, store_unavailable
from sessions.api.metrics import request_observe
from sessions.api.prompt import etag_matches, prompt_etag, prompt_json
from sessions.api.turns import push_read
from sessions.selectors.lookups import Route, session_route_cached
from sessions.selectors.prompts.state import PromptState
from sessions.selectors.token_budgets import policy_of
from sessions.services.memory.update_requests import memory_update_request
from sessions.services.prompts.direct_fetch import prompt_fetch_direct
from sessions.services.push.turns import turn_push_direct
from sessions.services.push.values import Target
from sessions.store.bodies import json_bytes
from sessions.store.loop_connections import LoopConnections, NotConnected
from sessions.store.prompt_bytes import PromptMessages, joined_fields
from sessions.store.rawjson import BadJson, read_object

log = logging.getLogger(__name__)

#: Status, headers and content.
Answer = tuple[int, list[tuple[str, str]], bytes]

#: Sessions whose names need no decoding.
_PATH = re.compile(r"/api/v1/sessions/([\w.~:@-]+)/(turns|prompt)/", re.ASCII)

#: Larger bodies are left to a thread: counting their tokens would delay the other requests (bytes).
LARGEST = 32_768

#: Connections to the database per process.
CONNECTIONS = 4


class DirectRequests:
    """Handles pushes and fetches on one event loop."""

    def __init__(self) -> None:
        self._connections = LoopConnections(_connect, size=CONNECTIONS)

    async def respond(self, environ: Mapping[str, Any], body: bytes) -> Answer | None:
        """Return the answer to a request, or None if Django has to handle it; nothing was stored then."""
        path = None if environ["QUERY_STRING"] else _PATH.fullmatch(environ["PATH_INFO"])
        if path is None:
            return None
        began = time.perf_counter()
        name, resource = path.groups()
        method = environ["REQUEST_METHOD"]
        if (method, resource) == ("POST", "turns") and _is_usual(environ, body):
            answer = await self._push(environ, body, name)
        elif (method, resource) == ("GET", "prompt"):
            answer = await self._fetch(environ, name)
        else:
            return None
        if answer is not None:
            route = f"api/v1/sessions/<str:session_id>/{resource}/"
            request_observe(method, route, answer[0], time.perf_counter() - began)
        return answer

    def close(self) -> None:
        """Close the connections to the database."""
        self._connections.close()

    async def _push(self, environ: Mapping[str, Any], body: bytes, name: str) -> Answer | None:
        found = _caller(environ, name, scope=Scope.PUSH)
        if found is None:
            return None
        principal, route = found
        if route.format is None or not ratelimit.take_reserved(principal):
            return None
        target = Target(key_id=principal.key_id, project_id=principal.project_id, session_id=route.id)
        content = None
        try:
            push = push_read(
                body, read_object(body), headers=environ, principal=principal, format=route.format
            )
            content = await turn_push_direct(self._connections, target, push)
        except (BadJson, ApiError):
            return None  # the endpoint responds with the error
        except psycopg.Error:
            response = store_unavailable()
            return _answer(environ, response.status_code, response.content)
        finally:
            if content is None:
                ratelimit.give_back(principal)  # the endpoint counts the request
        if content is None:
            return None
        if principal.upkeep:
            memory_update_request(route.id)
        return _answer(environ, 201, content)

    async def _fetch(self, environ: Mapping[str, Any], name: str) -> Answer | None:
        found = _caller(environ, name, scope=Scope.READ)
        if found is None:
            return None
        principal, route = found
        if not ratelimit.take_reserved(principal):
            return None
        answer = None
        try:
            prompt = await prompt_fetch_direct(
                self._connections,
                key_id=principal.key_id,
                project_id=principal.project_id,
                session_id=route.id,
            )
            if prompt is not None:
                answer = _prompt_answer(environ, *prompt)
        except (NotConnected, psycopg.Error):
            return None  # nothing that cannot be repeated has happened
        finally:
            if answer is None:
                ratelimit.give_back(principal)
        return answer


def _is_usual(environ: Mapping[str, Any], body: bytes) -> bool:
    is_json = environ.get("CONTENT_TYPE") == "application/json" and "HTTP_CONTENT_ENCODING" not in environ
    return is_json and 0 < len(body) <= LARGEST


def _caller(environ: Mapping[str, Any], name: str, *, scope: Scope) -> tuple[Principal, Route] | None:
    """Return the key and the session of a request, or None if they are not cached or the key may not."""
    principal = principal_cached(environ.get("HTTP_AUTHORIZATION", ""))
    if principal is None or scope not in principal.scopes:
        return None
    route = session_route_cached(project_id=principal.project_id, name=name)
    return None if route is None else (principal, route)


def _prompt_answer(environ: Mapping[str, Any], state: PromptState, messages: PromptMessages) -> Answer | None:
    """Return the answer to a fetch, or None if more must be read or computed for it."""
    format = get_dialect(state.format).name
    if state.provider_tokens > state.budget or is_compacted_by_provider(policy_of(state.policy), format):
        return None
    etag = prompt_etag(state, format)
    if etag_matches(environ, etag):
        return _answer(environ, 304, b"", ETag=etag)
    joined = joined_fields(messages, state.request_parts(format))
    if joined is None:
        return None
    body = prompt_json(state, messages, turn=state.turn_count - 1, format=format, joined=joined)
    return _answer(environ, 200, json_bytes(body), ETag=etag)


def _answer(environ: Mapping[str, Any], status: int, content: bytes, **headers: str) -> Answer:
    length = {"Content-Length": str(len(content))} if content else {}
    constant = _constant_headers(_is_secure(environ))
    return status, [*length.items(), *headers.items(), *constant], content


def _is_secure(environ: Mapping[str, Any]) -> bool:
    proxy = settings.SECURE_PROXY_SSL_HEADER
    return proxy is not None and environ.get(proxy[0]) == proxy[1]


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
