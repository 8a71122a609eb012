"""Middleware for pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import resolve_url


class LoginRequired(LoginRequiredMiddleware):
    """Require a login for every page, including requests by scripts.

    Browsers follow redirects transparently, so htmx would insert the login page into the current page. It
    gets an `HX-Redirect` instead. After the login, the user returns to the current page, or to the page with
    the form that the browser posted. Other scripts get the status 401.
    """

    def handle_no_permission(  # type: ignore[override]  # the stubs know redirects only
        self, request: HttpRequest, view_func: Callable[..., Any]
    ) -> HttpResponseBase:
        if "HX-Request" in request.headers:
            url = self._login_url(request.headers.get("HX-Current-URL", ""), view_func)
            return HttpResponse(status=204, headers={"HX-Redirect": url})
        if request.headers.get("Sec-Fetch-Dest") == "empty":
            return HttpResponse(status=401)
        if request.method == "POST":
            return HttpResponseRedirect(self._login_url(request.headers.get("Referer", ""), view_func))
        return super().handle_no_permission(request, view_func)

    def _login_url(self, page: str, view_func: Callable[..., Any]) -> str:
        current = urlsplit(page)
        path = current._replace(scheme="", netloc="").geturl() or "/"
        return redirect_to_login(path, resolve_url(self.get_login_url(view_func))).url
