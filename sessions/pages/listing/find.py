"""The search results of the command palette: settings, sessions, messages and the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo

from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from accounts.models import Project
from sessions.pages.access import private, viewer_of
from sessions.pages.manual.library import headings_search
from sessions.pages.manual.markup import page_address
from sessions.pages.search.hits import hit_address
from sessions.pages.settings.common import SECTIONS
from sessions.pages.text import visible
from sessions.pages.zones import zone_of
from sessions.selectors.search.request import search_expression
from sessions.selectors.search.results import search
from sessions.selectors.sessions import sessions_search

#: Number of entries of each kind, and characters of a message's label.
_SESSIONS, _MESSAGES, _DOCS, _LABEL = 5, 5, 3, 90


@require_safe
def palette_find(request: HttpRequest, slug: str) -> JsonResponse:
    viewer = viewer_of(request, slug)
    text = request.GET.get("q", "")[:500].replace("\0", "").strip()
    if not text:
        return private(JsonResponse({"places": []}))
    project, zone = viewer.project, zone_of(request)
    found = [*_settings(slug, text), *_sessions(project, text), *_messages(project, text, zone), *_docs(text)]
    return private(JsonResponse({"places": found}))


def _settings(slug: str, text: str) -> Iterator[dict[str, str]]:
    for label, name in SECTIONS:
        if all(word in f"settings {label}".lower() for word in text.lower().split()):
            yield {"label": label, "kind": "settings", "href": reverse(name, args=[slug])}


def _sessions(project: Project, text: str) -> Iterator[dict[str, str]]:
    # Words are complete, because messages that contain the beginning of a word are listed anyway.
    for each in sessions_search(project=project, text=f"{text} ", limit=_SESSIONS):
        address = reverse("session", args=[project.slug, each.pk])
        yield {"label": str(each), "kind": "session", "href": address}


def _messages(project: Project, text: str, zone: tzinfo) -> Iterator[dict[str, str]]:
    request = search_expression(text, is_typing=True, zone=zone).request(project.pk)
    if request.is_empty:
        return
    for hit in search(request, limit=_MESSAGES).hits:
        start = max(0, hit.snippet.marks[0][0] - 20) if hit.snippet.marks else 0
        label = " ".join(visible(hit.snippet.text[start : start + _LABEL]).split())
        yield {"label": label, "kind": "message", "href": hit_address(project.slug, hit)}


def _docs(text: str) -> Iterator[dict[str, str]]:
    for section in headings_search(text, limit=_DOCS):
        label = section.title if section.heading == section.title else f"{section.title} › {section.heading}"
        yield {"label": label, "kind": "docs", "href": f"{page_address(section.page)}#{section.anchor}"}
