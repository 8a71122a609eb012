"""URLs of all pages."""

from __future__ import annotations

from django.urls import include, path

#: Packages of `sessions.pages`; each has the URLs of its pages in `urls.py`.
PACKAGES = (
    "settings",
    "trends",
    "tools",
    "lab",
    "listing",
    "search",
    "session",
    "memory",
    "connect",
    "imports",
    "sharing",
    "manual",
)

urlpatterns = [
    path("", include("sessions.pages.hints")),
    *(path("", include(f"sessions.pages.{name}.urls")) for name in PACKAGES),
]
