"""Addresses of the sessions app: pages here, the API under /api/v1/."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [
    path("api/v1/", include("sessions.api.urls")),
    path("", include("sessions.pages.urls")),
]
