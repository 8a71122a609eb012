"""Addresses of the pages."""

from __future__ import annotations

from django.urls import path

from sessions.pages import compactions, session_detail, session_list
from sessions.pages.settings import urls as settings_urls

_SESSION = "p/<slug:slug>/sessions/<uuid:id>/"

urlpatterns = [
    *settings_urls.urlpatterns,
    path("", session_list.home, name="home"),
    path("p/<slug:slug>/sessions/", session_list.session_list, name="sessions"),
    path("p/<slug:slug>/sessions/sample/", session_list.sample_create, name="sample"),
    path(_SESSION, session_detail.session_detail, name="session"),
    path(f"{_SESSION}chart/", session_detail.session_chart, name="session_chart"),
    path(f"{_SESSION}chart/table/", session_detail.session_chart_table, name="session_chart_table"),
    path(f"{_SESSION}compactions/", compactions.session_compactions, name="session_compactions"),
    path(
        f"{_SESSION}compactions/preview/", compactions.session_compact_preview, name="session_compact_preview"
    ),
    path(f"{_SESSION}compact/", compactions.session_compact, name="session_compact"),
    path(
        f"{_SESSION}compactions/<int:number>/revert/",
        compactions.session_revert,
        name="session_revert",
    ),
    path(
        f"{_SESSION}messages/<int:position>/parts/<int:part>/",
        session_detail.session_text,
        name="session_text",
    ),
]
