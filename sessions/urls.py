"""Addresses of the sessions app: pages here, the API under /api/v1/."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [path("", include("sessions.pages.urls"))]
