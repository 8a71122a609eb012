"""URLs of shared transcripts and of their links."""

from __future__ import annotations

from django.urls import path

from sessions.pages.sharing import views

_SESSION = "p/<slug:slug>/sessions/<uuid:id>/"

urlpatterns = [
    path(f"{_SESSION}share/", views.session_share, name="session_share"),
    path(f"{_SESSION}share/<int:number>/revoke/", views.session_unshare, name="session_unshare"),
    path("shared/<str:token>/", views.shared_transcript, name="shared_transcript"),
]
