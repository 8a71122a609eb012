"""URLs of the documentation."""

from __future__ import annotations

from django.urls import path

from sessions.pages.manual import views

urlpatterns = [
    path("docs/", views.manual, name="manual"),
    path("docs/search/", views.manual_search, name="manual_search"),
    path("docs/<path:name>/", views.manual, name="manual_page"),
]
