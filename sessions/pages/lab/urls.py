"""URLs of the lab."""

from __future__ import annotations

from django.urls import path

from sessions.pages.lab import views

urlpatterns = [path("p/<slug:slug>/lab/", views.lab, name="lab")]
