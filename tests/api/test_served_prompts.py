"""`at_turn` returns the prompt that was served after that turn, with the size that was reported with it."""

from __future__ import annotations

from typing import Any

import pytest

from sessions.models import AgentSession, ServedPrompt
from tests.api.client import Api
from tests.api.talk import push, request, whole_turn
from tests.locking import waiting_for

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("session")]

PROMPT = "sessions/s1/prompt/?manifest=1"


def fill(api: Api, turns: int = 8) -> None:
    for number in range(turns):
        push(api, whole_turn(number))


def past(api: Api, turn: int) -> dict[str, Any]:
    data: dict[str, Any] = api.get(f"{PROMPT}&at_turn={turn}").json()
    return data


def compact(api: Api) -> int:
    done = api.post("sessions/s1/compact/", {"policy": {"target": 0.01}}).json()
    assert done["state"] == "done"
    return int(done["number"])


@pytest.mark.slow
def test_a_compaction_after_the_fetch_is_shown_from_the_next_turn_on(api: Api) -> None:
    fill(api)
    served = api.get(PROMPT).json()
    compact(api)
    assert past(api, 7) == served
    push(api, [request()])
    assert past(api, 7) == served
    assert past(api, 8) == api.get(PROMPT).json()
    assert past(api, 8)["compactions"] == 1


@pytest.mark.slow
def test_the_last_fetch_of_a_turn_determines_the_past_prompt(api: Api) -> None:
    fill(api)
    api.get(PROMPT)
    compact(api)
    served = api.get(PROMPT).json()
    push(api, [request()])
    assert past(api, 7) == served
    assert served["compactions"] == 1


@pytest.mark.slow
def test_a_compaction_before_the_fetch_is_shown_immediately(api: Api) -> None:
    fill(api)
    compact(api)
    served = api.get(PROMPT).json()
    push(api, [request()])
    assert past(api, 7) == served


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_served_before", [False, True])
def test_a_compaction_during_a_fetch_does_not_change_the_past_prompt(
    api: Api, is_served_before: bool
) -> None:
    fill(api, 7)
    if is_served_before:
        api.get(PROMPT)
    push(api, whole_turn(7))
    # The fetch has read the prompt, and records that it is served.
    with waiting_for(ServedPrompt._meta.db_table, lambda: api.get(PROMPT), mode="SHARE") as fetch:
        compact(api)
    push(api, [request()])
    assert past(api, 7) == fetch.result().json()
    assert api.get(PROMPT).json()["compactions"] == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_slow_fetch_does_not_change_the_past_prompt_of_a_later_turn(api: Api) -> None:
    fill(api)
    with waiting_for(ServedPrompt._meta.db_table, lambda: api.get(PROMPT), mode="SHARE"):
        push(api, whole_turn(8))
        served = api.get(PROMPT).json()
    compact(api)
    push(api, [request()])
    assert past(api, 8) == served


@pytest.mark.slow
@pytest.mark.parametrize("fetched_again", [False, True])
def test_a_revert_after_the_fetch_is_shown_from_the_next_turn_on(api: Api, fetched_again: bool) -> None:
    fill(api)
    number = compact(api)
    served = api.get(PROMPT).json()
    api.post(f"sessions/s1/compactions/{number}/revert/")
    if fetched_again:
        served = api.get(PROMPT).json()
    push(api, [request()])
    assert past(api, 7) == served
    push(api, [request()])
    assert past(api, 8)["messages"][:4] == whole_turn(0)


@pytest.mark.slow
def test_sizes_do_not_change_with_later_usage_and_budgets(api: Api) -> None:
    served = []
    api.post("sessions/", {"id": "s2", "budget": {"input_tokens": 3_000}, "policy": {"soft": 0, "hard": 0}})
    for number in range(6):
        usage = {"input_tokens": 400 + 1_300 * number} if number in (2, 4) else None
        push(api, whole_turn(number), session="s2", usage=usage)
        served.append(api.get("sessions/s2/prompt/?manifest=1").json())
    assert len({data["fits"] for data in served}) == 2
    assert [api.get(f"sessions/s2/prompt/?manifest=1&at_turn={n}").json() for n in range(6)] == served
    AgentSession.objects.filter(external_id="s2").update(budget_tokens=9_000)
    push(api, [request()], session="s2")
    assert [api.get(f"sessions/s2/prompt/?manifest=1&at_turn={n}").json() for n in range(6)] == served
