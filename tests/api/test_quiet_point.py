"""Background compactions wait briefly for an action that the working memory has just planned."""

from __future__ import annotations

import pytest

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


def test_without_a_plan_nothing_is_delayed(api: Api) -> None:
    api.post("sessions/", {"id": "s1", "policy": EVERY_THIRD})
    assert [fired(api, number) for number in range(3)] == [[], [], ["turns"]]
