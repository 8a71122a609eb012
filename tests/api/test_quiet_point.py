"""Background compactions wait briefly for an action that the working memory has just planned."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import Project
from tests.api.client import Api
from tests.api.talk import push, whole_turn

EVERY_THIRD = {"soft": 0, "hard": 0, "every_turns": 3}
MEMORY = "sessions/s1/memory/"


def fired(api: Api, number: int) -> list[str]:
    return [one["trigger"] for one in push(api, whole_turn(number))["fired"]]


def plan(api: Api, action: str) -> None:
    response = api.patch(MEMORY, {"next": action}, if_match=api.get(MEMORY).headers["ETag"])
    assert response.status_code == 200, response.content


def test_a_plan_gets_a_turn_before_a_compaction(api: Api) -> None:
    api.post("sessions/", {"id": "s1", "policy": EVERY_THIRD})
    assert [fired(api, number) for number in range(2)] == [[], []]
    plan(api, "run the tests of the parcels")
    assert [fired(api, number) for number in (2, 3)] == [[], ["turns"]]


@pytest.mark.slow
def test_planning_in_every_turn_does_not_delay_compactions_forever(api: Api) -> None:
    api.post("sessions/", {"id": "s1", "policy": EVERY_THIRD})
    result = []
    for number in range(5):
        result.append(fired(api, number))
        plan(api, f"step {number}")
    assert result == [[], [], [], [], ["turns"]]


def test_the_interval_applies_above_the_soft_limit_if_no_model_summarizes(api: Api) -> None:
    api.post("sessions/", {"id": "s1", "policy": {"every_turns": 3}, "budget": {"input_tokens": 2_600}})
    pushed = [push(api, whole_turn(number)) for number in range(3)]
    assert 0.7 < pushed[-1]["prompt"]["occupancy"] < 0.95
    assert [each["trigger"] for each in pushed[-1]["fired"]] == ["turns"]


def test_the_soft_limit_does_not_apply_if_the_project_turns_off_the_summarizer(
    api: Api, project: Project, settings: Any
) -> None:
    settings.CONTEXTAPP_ANTHROPIC_API_KEY = "a key"
    for model, triggers in (("off", []), ("", ["soft"])):
        Project.objects.update(summarizer_model=model)
        api.post("sessions/", {"id": f"s{model}", "budget": {"input_tokens": 2_600}})
        for number in range(3):
            pushed = push(api, whole_turn(number), f"s{model}")
        assert [each["trigger"] for each in pushed["fired"]] == triggers, model


def test_without_a_plan_nothing_is_delayed(api: Api) -> None:
    api.post("sessions/", {"id": "s1", "policy": EVERY_THIRD})
    assert [fired(api, number) for number in range(3)] == [[], [], ["turns"]]
