"""`compactions/export/`: the records of all compactions as JSON Lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessions.models import Compaction
from sessions.selectors.compactions import records as compactions
from tests.api.client import Api
from tests.api.talk import push, whole_turn
from tests.plugins.reused import reused

EXPORT = "sessions/s/compactions/export/"


@reused(autouse=True)
def session(api: Api) -> None:
    api.post("sessions/", {"id": "s", "budget": {"input_tokens": 2_500}, "policy": "masking"})


def exported(api: Api) -> list[dict[str, Any]]:
    response = api.get(EXPORT)
    assert (response.status_code, response["Content-Type"]) == (200, "application/x-ndjson")
    content: bytes = response.getvalue()
    assert not content or content.endswith(b"\n")
    return [json.loads(line) for line in content.splitlines()]


def test_a_session_without_compactions_has_no_lines(api: Api) -> None:
    assert exported(api) == []


@pytest.mark.slow
def test_each_line_is_a_compaction_oldest_first(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compactions, "_EXPORT_PAGE", 2)
    for number in range(24):
        push(api, whole_turn(number), session="s")
    api.post("sessions/s/compact/")
    lines = exported(api)
    assert [line["number"] for line in lines] == list(range(1, Compaction.objects.count() + 1))
    assert len(lines) > 4
    listed = api.get("sessions/s/compactions/").json()["data"]
    assert [{k: v for k, v in line.items() if k in listed[0]} for line in reversed(lines)] == listed
    assert {(line["session"], line["external_id"]) for line in lines} == {
        (api.get("sessions/s/").json()["id"], "s")
    }


def test_a_key_of_another_project_sees_nothing(stranger_api: Api) -> None:
    assert stranger_api.get(EXPORT).status_code == 404
