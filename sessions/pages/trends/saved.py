"""Presets: named periods and filters of the trends page."""

from __future__ import annotations

from datetime import date

from django.http import HttpRequest, HttpResponse, QueryDict
from django.views.decorators.http import require_POST

from sessions.models import SavedView
from sessions.pages.saved_queries import SavedQueries

_PRESETS = SavedQueries(
    page=SavedView.Page.TRENDS,
    url_name="trends",
    noun="preset",
    required="Enter a name to save the preset.",
)


@require_POST
def trends_preset_create(request: HttpRequest, slug: str) -> HttpResponse:
    """Save a preset. With the field `relative`, its period always ends today."""
    return _PRESETS.add(request, slug, _until_today if "relative" in request.POST else str)


@require_POST
def trends_preset_delete(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    return _PRESETS.remove(request, slug, number)


def _until_today(text: str) -> str:
    """Replace the dates of a period with its number of days."""
    query = QueryDict(text, mutable=True)
    try:
        first, last = (date.fromisoformat(str(query[name])) for name in ("first", "last"))
    except (KeyError, ValueError):
        return text
    for name in ("first", "last", "other"):
        query.pop(name, None)
    query["days"] = str(abs((last - first).days) + 1)
    return query.urlencode()
