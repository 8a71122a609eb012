"""Addresses of the sessions app: pages here, the API under /api/v1/."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
