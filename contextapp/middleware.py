"""Middleware around all requests, and the middleware that only pages need.

Pages need cookies, CSRF, login, messages, the content security policy. Requests to the API skip these:
running ten layers that do nothing takes longer than reading the state of a session from the database.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, cast

from django.conf import settings
from django.core.handlers.exception import convert_exception_to_response
from django.db import connection
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.module_loading import import_string

#: Paths of requests that programs send: the REST API, the MCP server, telemetry, health checks and metrics.
#: Health checks and Prometheus address a container by its name or address, which is not an allowed host.
API = re.compile(r"/api/v1/|/mcp(?:/|$)|/otel/|/(?:healthz|readyz|metrics)$")

Handler = Callable[[HttpRequest], HttpResponseBase]


class PoolCheck:
    """Replace the broken connections of this process's pool after a request that lost its own.

    After the database has restarted, all of them are broken; otherwise each would fail one more request.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        pool = getattr(connection, "pool", None)
        if connection.errors_occurred and pool is not None:
            pool.check()
        return response


class PageMiddleware:
    """Run `settings.PAGE_MIDDLEWARE` with all its hooks, except for requests to the API.

    Browsers and proxies must not cache a page unless its view allows it.

    The hooks run in Django's order: `process_view` from the outermost layer to the innermost, the others
    from the innermost to the outermost.
    """

    def __init__(self, get_response: Handler) -> None:
        self.api = self.pages = get_response
        self.layers: list[Any] = []  # the innermost first
        for path in reversed(settings.PAGE_MIDDLEWARE):
            layer = import_string(path)(self.pages)
            self.layers.append(layer)
            self.pages = cast(Handler, convert_exception_to_response(layer))

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if _is_api(request):
            return self.api(request)
        response = self.pages(request)
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        for hook in _hooks("process_view", request, reversed(self.layers)):
            response: HttpResponseBase | None = hook(request, view, args, kwargs)
            if response is not None:
                return response
        return None

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponseBase | None:
        for hook in _hooks("process_exception", request, self.layers):
            response: HttpResponseBase | None = hook(request, exception)
            if response is not None:
                return response
        return None

    def process_template_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        for hook in _hooks("process_template_response", request, self.layers):
            response = hook(request, response)
        return response


def _is_api(request: HttpRequest) -> bool:
    return API.match(request.path) is not None


def _hooks(name: str, request: HttpRequest, layers: Iterable[Any]) -> list[Callable[..., Any]]:
    if _is_api(request):
        return []
    return [getattr(layer, name) for layer in layers if hasattr(layer, name)]
