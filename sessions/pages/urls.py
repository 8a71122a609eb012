"""Addresses of the pages."""

from __future__ import annotations

from django.urls import path

from sessions.pages import session_list
from sessions.pages.lab import urls as lab_urls
from sessions.pages.memory import urls as memory_urls
from sessions.pages.replay import urls as replay_urls
from sessions.pages.session import urls as session_urls
from sessions.pages.settings import urls as settings_urls
from sessions.pages.trends import urls as trends_urls

urlpatterns = [
    *settings_urls.urlpatterns,
    *trends_urls.urlpatterns,
    *lab_urls.urlpatterns,
    path("", session_list.home, name="home"),
    path("p/<slug:slug>/sessions/", session_list.session_list, name="sessions"),
    path("p/<slug:slug>/sessions/sample/", session_list.sample_create, name="sample"),
    *session_urls.urlpatterns,
    *replay_urls.urlpatterns,
    *memory_urls.urlpatterns,
]
