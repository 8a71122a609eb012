"""Saving the list's filter under a name, and forgetting it."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from sessions.pages.access import viewer_of
from sessions.services.sessions.saved_views import TooManyViews, view_delete, view_save


@require_POST
def saved_view_create(request: HttpRequest, slug: str) -> HttpResponse:
    """Every member may: a view is the person's own and changes nothing of the project."""
    viewer = viewer_of(request, slug)
    name = request.POST.get("name", "").replace("\0", "").strip()[:80]
    query = query_clean(request.POST.get("query", ""))
    address = f"{reverse('sessions', args=[slug])}?{query}"
    if not name or not query:
        messages.error(request, "A view needs a name and a filter.")
        return redirect(address)
    try:
        view_save(project=viewer.project, user=request.user, name=name, query=query)
    except TooManyViews:
        messages.error(request, "There are too many views; delete one first.")
    return redirect(address)


@require_POST
def saved_view_delete(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    viewer = viewer_of(request, slug)
    if not view_delete(project=viewer.project, user=request.user, id=min(number, 2**63 - 1)):
        raise Http404("no such view")
    return redirect("sessions", slug=slug)


def query_clean(text: str) -> str:
    """The fields of a filter as they stand in an address, without where the page began."""
    query = QueryDict(text[:1_000], mutable=True)
    for name in [name for name in query if name == "after" or not query[name] or "\0" in query[name]]:
        del query[name]
    encoded = query.urlencode()
    return encoded if len(encoded) <= 1_000 else ""
