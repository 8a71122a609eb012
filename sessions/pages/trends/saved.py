"""Save and delete presets: named periods and filters of the trends page."""

from __future__ import annotations

from datetime import date

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from sessions.models import SavedView
from sessions.pages.access import viewer_of
from sessions.pages.listing.saved import query_clean
from sessions.services.sessions.saved_views import SecretInView, TooManyViews, view_delete, view_save


@require_POST
def trends_preset_create(request: HttpRequest, slug: str) -> HttpResponse:
    """Save a preset, which only its user can see."""
    viewer = viewer_of(request, slug)
    name = request.POST.get("name", "").replace("\0", "").strip()[:80]
    query = query_clean(request.POST.get("query", ""))
    if "relative" in request.POST:
        query = _until_today(query)
    address = f"{reverse('trends', args=[slug])}?{query}"
    if not name or not query:
        messages.error(request, "Enter a name to save the preset.")
        return redirect(address)
    try:
        page = SavedView.Page.TRENDS
        view_save(project=viewer.project, user=request.user, name=name, query=query, page=page)
    except SecretInView:
        messages.error(request, "The preset contains what looks like a secret. It was not saved.")
        return redirect("trends", slug=slug)
    except TooManyViews:
        messages.error(request, "You have reached the limit of saved presets. Delete one first.")
    return redirect(address)


@require_POST
def trends_preset_delete(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    viewer = viewer_of(request, slug)
    if not view_delete(project=viewer.project, user=request.user, id=min(number, 2**63 - 1)):
        raise Http404("Preset not found")
    return redirect("trends", slug=slug)


def _until_today(text: str) -> str:
    """Replace the dates of a period with its number of days, so that it always ends today."""
    query = QueryDict(text, mutable=True)
    try:
        first, last = (date.fromisoformat(str(query[name])) for name in ("first", "last"))
    except (KeyError, ValueError):
        return text
    for name in ("first", "last", "other"):
        query.pop(name, None)
    query["days"] = str(abs((last - first).days) + 1)
    return query.urlencode()
