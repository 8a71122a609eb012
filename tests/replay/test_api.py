"""Replays over the API: create, read, cancel, resume."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Project
from replay.models import ReplayRun
from replay.services import execution
from sessions.models import AgentSession
from tests.api.client import Api, code
from tests.pages.transcripts import make_session
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db


@reused
def admin(admin_api: Api) -> Api:
    return admin_api


def create_replay(admin: Api, **body: Any) -> dict[str, Any]:
    answer = admin.post("replays/", {"policies": ["off", "balanced"], "ratios": [1.0, 0.5]} | body)
    assert answer.status_code == 201, answer.content
    return answer.json()


def finished(replay: dict[str, Any]) -> None:
    while ReplayRun.objects.get(pk=replay["id"]).state in ReplayRun.OPEN:
        execution.run_step(run_id=replay["id"])


@pytest.mark.slow
def test_create_and_read_a_replay(admin: Api, session: AgentSession) -> None:
    replay = create_replay(admin, sessions=["long"], title="half the budget")
    assert (replay["state"], replay["steps"], replay["done"]) == ("running", 4, 0)
    finished(replay)
    shown = admin.get(f"replays/{replay['id']}/").json()
    assert (shown["state"], shown["done"]) == ("done", 4)
    assert [(row["budget"], row["policy"]) for row in shown["rows"]] == [
        ("1.00", "off"),
        ("1.00", "balanced"),
        ("0.50", "off"),
        ("0.50", "balanced"),
    ]
    assert shown["rows"][0]["fits"] == shown["rows"][0]["calls"] == 30
    assert shown["rows"][2]["fits"] < 30
    curves = admin.get(f"replays/{replay['id']}/sessions/long/").json()
    assert curves["session"] == str(session.pk)
    assert len(curves["data"][0]["prompts"]) == 30
    assert curves["data"][2]["first_lost"]["turn"] > 0
    if folder := os.environ.get("CONTEXTAPP_WRITE_EXAMPLES"):
        Path(folder, "replays.json").write_text(json.dumps([replay, shown, curves]))


@pytest.mark.slow
def test_reprice_by_model_or_rates(admin: Api, session: AgentSession) -> None:
    replay = create_replay(admin)
    finished(replay)
    shown = [
        admin.get(f"replays/{replay['id']}/?prices={prices}").json()["rows"][0]["cost_microusd"]
        for prices in ("claude-haiku-4-5", "input=1000")
    ]
    assert shown[1] > shown[0] > 0
    assert code(admin.get(f"replays/{replay['id']}/?prices=nobody-knows")) == "invalid_field"


def test_cancel_and_resume_a_replay(admin: Api, session: AgentSession) -> None:
    address = f"replays/{create_replay(admin)['id']}/"
    assert admin.patch(address, {"state": "cancelled"}).json()["state"] == "cancelled"
    assert code(admin.patch(address, {"state": "cancelled"})) == "invalid_field"
    assert admin.patch(address, {"state": "running"}).json()["state"] == "running"
    assert code(admin.patch(address, {"state": "running"})) == "invalid_field"
    assert code(admin.patch(address, {"state": "done"})) == "invalid_field"


def test_replays_are_listed_newest_first(admin: Api, session: AgentSession) -> None:
    ids = [create_replay(admin)["id"] for _ in range(3)]
    first = admin.get("replays/?limit=2").json()
    rest = admin.get(f"replays/?limit=2&cursor={first['next_cursor']}").json()
    assert [run["id"] for run in first["data"] + rest["data"]] == ids[::-1]
    assert rest["next_cursor"] is None


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"sessions": ["long"], "newest": {"count": 1}}, ""),
        ({"sessions": []}, "sessions"),
        ({"policies": ["off", "off"]}, "policies"),
        ({"ratios": [2]}, "ratios"),
        ({"budgets": [0]}, "budgets"),
        ({"with_model": True}, "with_model"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_invalid_runs_are_rejected(admin: Api, session: AgentSession, body: Any, param: str) -> None:
    answer = admin.post("replays/", body)
    assert answer.status_code == 400, answer.content
    assert (answer.json()["error"]["param"] or "").startswith(param)
    assert not ReplayRun.objects.exists()


def test_a_session_of_another_project_is_not_found(
    admin: Api, other_project: Project, session: AgentSession
) -> None:
    foreign = make_session(other_project, name="foreign")
    assert admin.post("replays/", {"sessions": [str(foreign.pk)]}).status_code == 404
    replay = create_replay(admin)
    assert admin.get(f"replays/{replay['id']}/sessions/{foreign.pk}/").status_code == 404


@pytest.mark.slow
def test_reading_takes_few_queries(admin: Api, session: AgentSession) -> None:
    replay = create_replay(admin)
    finished(replay)
    for address, most in ((f"replays/{replay['id']}/", 4), ("replays/", 3)):
        admin.get(address)
        with CaptureQueriesContext(connection) as queries:
            admin.get(address)
        assert len(queries) <= most, [query["sql"] for query in queries]
