"""URLs of the trends pages."""

from __future__ import annotations

from django.urls import path

from sessions.pages.trends import views

urlpatterns = [
    path("p/<slug:slug>/trends/", views.trends, name="trends"),
    path("p/<slug:slug>/trends/series/", views.trends_series, name="trends_series"),
    path("p/<slug:slug>/trends/csv/", views.trends_csv, name="trends_csv"),
]
