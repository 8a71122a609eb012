"""URLs of the working memory pages."""

from __future__ import annotations

from django.urls import path

from sessions.pages.memory import current, revision, shared

_SESSION = "p/<slug:slug>/sessions/<uuid:id>/memory/"
_SHARED = "p/<slug:slug>/memory/"

urlpatterns = [
    path(_SESSION, current.session_memory, name="session_memory"),
    path(f"{_SESSION}change/", current.session_memory_change, name="session_memory_change"),
    path(f"{_SESSION}observe/", current.session_memory_observe, name="session_memory_observe"),
    path(f"{_SESSION}propose/", current.session_memory_propose, name="session_memory_propose"),
    path(f"{_SESSION}take/", current.session_memory_add_shared, name="session_memory_add_shared"),
    path(f"{_SESSION}<int:number>/", revision.session_memory_revision, name="session_memory_revision"),
    path(_SHARED, shared.memory, name="memory"),
    path(f"{_SHARED}facts/", shared.memory_facts, name="memory_facts"),
    path(f"{_SHARED}facts/<uuid:fact>/", shared.memory_fact, name="memory_fact"),
    path(f"{_SHARED}prune/", shared.memory_prune, name="memory_prune"),
]
