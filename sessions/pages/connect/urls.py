"""URLs of the page Connect."""

from __future__ import annotations

from django.urls import path

from sessions.pages.connect import views

urlpatterns = [
    path("p/<slug:slug>/connect/", views.connect, name="connect"),
    path("p/<slug:slug>/connect/status/", views.connect_status, name="connect_status"),
    path("p/<slug:slug>/connect/settings/", views.gateway_settings, name="connect_settings"),
    path("p/<slug:slug>/connect/provider-key/", views.provider_key, name="connect_provider_key"),
]
