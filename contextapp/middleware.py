"""What only pages need: cookies, CSRF, logging in, messages, the content policy.

An agent's call has none of them, and going through nine layers that do nothing takes longer than reading
a session's state from the database.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.module_loading import import_string

API = "/api/v1/"

Handler = Callable[[HttpRequest], HttpResponseBase]


class ForPages:
    """Runs `settings.PAGE_MIDDLEWARE` for everything but the API."""

    def __init__(self, get_response: Handler) -> None:
        self.api = self.pages = get_response
        self.layers: list[Any] = []
        for path in reversed(settings.PAGE_MIDDLEWARE):
            self.pages = import_string(path)(self.pages)
            self.layers.insert(0, self.pages)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.api(request) if request.path.startswith(API) else self.pages(request)

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        """Django asks each layer before it calls a view; the first that answers wins."""
        if request.path.startswith(API):
            return None
        for layer in self.layers:
            if ask := getattr(layer, "process_view", None):
                answer: HttpResponseBase | None = ask(request, view, args, kwargs)
                if answer is not None:
                    return answer
        return None
