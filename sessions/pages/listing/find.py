"""The search results of the command palette: settings, projects, sessions, messages and the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import tzinfo
from itertools import islice

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
from sessions.selectors.lists.sessions import sessions_search
from sessions.selectors.search.request import search_expression
from sessions.selectors.search.results import SearchHit, search

#: Number of entries of each kind, and characters of a message's label.
_PROJECTS, _SESSIONS, _MESSAGES, _DOCS, _LABEL = 5, 5, 5, 3, 90


@require_safe
def palette_find(request: HttpRequest, slug: str) -> JsonResponse:
    viewer = viewer_of(request, slug)
    text = request.GET.get("q", "")[:500].replace("\0", "").strip()
    if not text:
        return private(JsonResponse({"places": []}))
    hits = _hits(viewer.project, text, zone_of(request))
    found = [
        *_settings(slug, text),
        *_projects(viewer.projects, text),
        *_sessions(viewer.project, text, hits),
        *(_message(slug, hit) for hit in hits),
        *_docs(text),
    ]
    return private(JsonResponse({"places": found}))


def _settings(slug: str, text: str) -> Iterator[dict[str, str]]:
    for label, name in SECTIONS:
        if all(word in f"settings {label}".lower() for word in text.lower().split()):
            yield {"label": label, "kind": "settings", "href": reverse(name, args=[slug])}


def _projects(projects: Sequence[Project], text: str) -> Iterator[dict[str, str]]:
    words = text.lower().split()
    named = (each for each in projects if all(word in f"project {each.name}".lower() for word in words))
    for each in islice(named, _PROJECTS):
        yield {"label": each.name, "kind": "project", "href": reverse("sessions", args=[each.slug])}


def _sessions(project: Project, text: str, hits: Sequence[SearchHit]) -> Iterator[dict[str, str]]:
    """Yield the sessions that contain all words, then those with messages that begin with the last one."""
    found = {each.pk: each for each in sessions_search(project=project, text=f"{text} ", limit=_SESSIONS)}
    for hit in hits:
        found.setdefault(hit.session.pk, hit.session)
    for each in list(found.values())[:_SESSIONS]:
        address = reverse("session", args=[project.slug, each.pk])
        yield {"label": str(each), "kind": "session", "href": address}


def _hits(project: Project, text: str, zone: tzinfo) -> Sequence[SearchHit]:
    request = search_expression(text, is_typing=True, zone=zone).request(project.pk)
    return [] if request.is_empty else search(request, limit=_MESSAGES).hits


def _message(slug: str, hit: SearchHit) -> dict[str, str]:
    start = max(0, hit.snippet.marks[0][0] - 20) if hit.snippet.marks else 0
    label = " ".join(visible(hit.snippet.text[start : start + _LABEL]).split())
    within = f"Turn {hit.turn} · {hit.session}"
    return {"label": label, "within": within, "kind": "message", "href": hit_address(slug, hit)}


def _docs(text: str) -> Iterator[dict[str, str]]:
    for section in headings_search(text, limit=_DOCS):
        label = section.title if section.heading == section.title else f"{section.title} › {section.heading}"
        yield {"label": label, "kind": "docs", "href": f"{page_address(section.page)}#{section.anchor}"}
