"""A strategy and a trigger that are added to their registries work in the store, the API and the pages."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from accounts.models import Project
from compaction.context import Context
from compaction.policy import Policy
from compaction.strategies import STRATEGIES, StepResult, Strategy
from compaction.triggers import TRIGGERS, Trigger, TriggerState
from compaction.view import View
from sessions.models import AgentSession, Compaction, Edit
from tests.api.client import Api
from tests.api.talk import push, whole_turn

pytestmark = pytest.mark.django_db


def shout(view: View, context: Context) -> StepResult:
    """Replace the oldest output of the middle."""
    output = next(output for output in context.outputs(view) if output.is_editable)
    edit = context.replace("shout", output.position, output.part, lambda _: "LOUD", reason="too quiet")
    return StepResult.of(view, (edit,) if edit else ())


def is_third_turn(state: TriggerState, policy: Policy) -> bool:
    return state.turns_since_compaction == 3


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add an entry to each registry."""
    strategy = Strategy(name="shout", meaning="Shouted.", description="Shouts.", run=shout, is_free=True)
    trigger = Trigger(
        name="moon", meaning="The moon was full.", description="Full moon.", condition=is_third_turn
    )
    monkeypatch.setitem(STRATEGIES, "shout", strategy)
    monkeypatch.setitem(TRIGGERS, "moon", trigger)


def test_a_new_strategy_and_a_new_trigger_compact_a_session(
    api: Api, viewer_client: Client, project: Project
) -> None:
    policy = {"steps": ["shout"], "soft": 0, "hard": 0, "tail_share": 0.01}
    assert api.post("sessions/", {"id": "s1", "policy": policy}).status_code == 201
    fired = [push(api, whole_turn(number), session="s1")["fired"] for number in range(3)]

    assert [[(one["trigger"], one["state"]) for one in turn] for turn in fired] == [
        [],
        [],
        [("moon", "done")],
    ]
    row = Compaction.objects.get()
    assert row.trigger == "moon"
    assert row.record["strategies"] == ["shout"]
    assert list(Edit.objects.values_list("strategy", flat=True)) == ["shout"]
    assert "LOUD" in json.dumps(api.get("sessions/s1/prompt/").json())

    session = AgentSession.objects.get()
    page = viewer_client.get(f"/p/{project.slug}/sessions/{session.pk}/compactions/1/").content.decode()
    assert 'title="The moon was full."' in page
    assert 'title="Shouted."' in page
