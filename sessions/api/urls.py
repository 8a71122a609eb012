"""Addresses of the API, under /api/v1/."""

from django.urls import path

from sessions.api import prompt, sessions, turns

app_name = "api"

urlpatterns = [
    path("sessions/", sessions.Sessions.as_view(), name="sessions"),
    path("sessions/<str:session_id>/", sessions.SessionDetail.as_view(), name="session"),
    path("sessions/<str:session_id>/turns/", turns.Turns.as_view(), name="turns"),
    path("sessions/<str:session_id>/prompt/", prompt.Prompt.as_view(), name="prompt"),
]
