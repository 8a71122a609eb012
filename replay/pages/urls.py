"""URLs of the replay pages."""

from __future__ import annotations

from django.urls import path

from replay.pages import advice, curves, rates, run, runs, session

_REPLAY = "p/<slug:slug>/replay/"
_RUN = f"{_REPLAY}<uuid:run>/"

urlpatterns = [
    path(_REPLAY, runs.replay_runs, name="replay"),
    path(f"{_REPLAY}advice/", advice.replay_advice, name="replay_advice"),
    path(f"{_REPLAY}rates/", rates.replay_rates, name="replay_rates"),
    path(_RUN, run.replay_run, name="replay_run"),
    path(f"{_RUN}change/", run.replay_change, name="replay_change"),
    path(f"{_RUN}sessions/<uuid:id>/", curves.replay_curves, name="replay_curves"),
    path("p/<slug:slug>/sessions/<uuid:id>/replay/", session.session_replay, name="session_replay"),
]
