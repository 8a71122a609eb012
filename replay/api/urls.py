"""API URLs of replays, under /api/v1/."""

from django.urls import path

from replay.api import views

app_name = "replay-api"

urlpatterns = [
    path("replays/", views.Replays.as_view(), name="replays"),
    path("replays/<str:replay_id>/", views.ReplayView.as_view(), name="replay"),
    path(
        "replays/<str:replay_id>/sessions/<str:session_id>/",
        views.ReplaySession.as_view(),
        name="replay-session",
    ),
]
