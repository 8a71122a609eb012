"""Saved views: named filters of the session list."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from sessions.models import SavedView
from sessions.pages.saved_queries import SavedQueries

_VIEWS = SavedQueries(
    page=SavedView.Page.SESSIONS,
    url_name="sessions",
    noun="view",
    required="Enter a name and set a filter to save a view.",
)


@require_POST
def saved_view_create(request: HttpRequest, slug: str) -> HttpResponse:
    return _VIEWS.add(request, slug)


@require_POST
def saved_view_delete(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    return _VIEWS.remove(request, slug, number)
