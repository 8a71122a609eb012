"""Save and delete named queries of a page: views of the session list, presets of trends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from sessions.models import SavedView
from sessions.pages.access import redirect_back, viewer_of
from sessions.services.sessions.saved_views import SecretInView, TooManyViews, view_delete, view_save

#: Maximum length of a query string.
_QUERY_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedQueries:
    """The saved queries of a page: its URL name, what its users call them, and what a query needs."""

    page: SavedView.Page
    url_name: str
    noun: str
    required: str

    def add(self, request: HttpRequest, slug: str, adapt: Callable[[str], str] = str) -> HttpResponse:
        """Save the posted query as `adapt` returns it. All members may do this: only they can see it."""
        viewer = viewer_of(request, slug)
        name = request.POST.get("name", "").replace("\0", "").strip()[:80]
        query = adapt(query_clean(request.POST.get("query", "")))
        address = f"{reverse(self.url_name, args=[slug])}?{query}"
        if not name or not query:
            messages.error(request, self.required)
            return redirect(address)
        try:
            view_save(project=viewer.project, user=request.user, name=name, query=query, page=self.page)
        except SecretInView:
            messages.error(request, f"The {self.noun} contains what looks like a secret. It was not saved.")
            return redirect(self.url_name, slug=slug)
        except TooManyViews:
            messages.error(request, f"You have reached the limit of saved {self.noun}s. Delete one first.")
        return redirect(address)

    def remove(self, request: HttpRequest, slug: str, number: int) -> HttpResponse:
        """Delete a query of the user, who stays on the page with its current filter."""
        viewer = viewer_of(request, slug)
        if not view_delete(project=viewer.project, user=request.user, id=number):
            raise Http404(f"{self.noun.capitalize()} not found")
        return redirect_back(request, reverse(self.url_name, args=[slug]))


def query_clean(text: str) -> str:
    """Return a filter's query string without empty fields or the page cursor."""
    query = QueryDict(text[:_QUERY_MAX], mutable=True)
    for name in [name for name in query if name == "after" or not query[name] or "\0" in query[name]]:
        del query[name]
    encoded = query.urlencode()
    return encoded if len(encoded) <= _QUERY_MAX else ""
