"""URLs of the search page."""

from __future__ import annotations

from django.urls import path

from sessions.pages.search import views

urlpatterns = [path("p/<slug:slug>/search/", views.search_page, name="search")]
