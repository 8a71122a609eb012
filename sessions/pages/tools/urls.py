"""URLs of the tools pages."""

from __future__ import annotations

from django.urls import path

from sessions.pages.tools import views

urlpatterns = [
    path("p/<slug:slug>/tools/", views.project_tools_page, name="tools"),
    path("p/<slug:slug>/sessions/<uuid:id>/tools/", views.session_tools_page, name="session_tools"),
]
