"""Save and delete views: named filters of the session list."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from sessions.pages.access import viewer_of
from sessions.services.sessions.saved_views import SecretInView, TooManyViews, view_delete, view_save


@require_POST
def saved_view_create(request: HttpRequest, slug: str) -> HttpResponse:
    """Save a view. All members may do this: a view is visible to its user only."""
    viewer = viewer_of(request, slug)
    name = request.POST.get("name", "").replace("\0", "").strip()[:80]
    query = query_clean(request.POST.get("query", ""))
    address = f"{reverse('sessions', args=[slug])}?{query}"
    if not name or not query:
        messages.error(request, "Enter a name and set a filter to save a view.")
        return redirect(address)
    try:
        view_save(project=viewer.project, user=request.user, name=name, query=query)
    except SecretInView:
        messages.error(request, "The view contains what looks like a secret. It was not saved.")
        return redirect("sessions", slug=slug)
    except TooManyViews:
        messages.error(request, "You have reached the limit of saved views. Delete one first.")
    return redirect(address)


@require_POST
def saved_view_delete(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    viewer = viewer_of(request, slug)
    if not view_delete(project=viewer.project, user=request.user, id=min(number, 2**63 - 1)):
        raise Http404("View not found")
    return redirect("sessions", slug=slug)


def query_clean(text: str) -> str:
    """Return a filter's query string without empty fields and the page cursor."""
    query = QueryDict(text[:1_000], mutable=True)
    for name in [name for name in query if name == "after" or not query[name] or "\0" in query[name]]:
        del query[name]
    encoded = query.urlencode()
    return encoded if len(encoded) <= 1_000 else ""
