"""URLs of the session list."""

from __future__ import annotations

from django.urls import path

from sessions.pages.listing import bulk, find, sample, saved, views

_LIST = "p/<slug:slug>/sessions/"

urlpatterns = [
    path("", views.home, name="home"),
    path(_LIST, views.session_list, name="sessions"),
    path(f"{_LIST}sample/", sample.sample, name="sample"),
    path(f"{_LIST}sample/delete/", sample.sample_delete, name="sample_delete"),
    path(f"{_LIST}suggest/", views.session_suggest, name="sessions_suggest"),
    path(f"{_LIST}find/", find.palette_find, name="sessions_find"),
    path(f"{_LIST}moved/", views.sessions_updated, name="sessions_updated"),
    path(f"{_LIST}export.csv", views.sessions_export, name="sessions_export"),
    path(f"{_LIST}bulk/", bulk.sessions_bulk, name="sessions_bulk"),
    path(f"{_LIST}delete/", bulk.sessions_delete, name="sessions_delete"),
    path(f"{_LIST}views/", saved.saved_view_create, name="saved_view_create"),
    path(f"{_LIST}views/<int:number>/delete/", saved.saved_view_delete, name="saved_view_delete"),
]
