"""Pushes that use the process's cached session state while other processes change the session."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from accounts.models import ApiKey
from sessions.models import AgentSession, Message, Turn
from sessions.services.push.session_state import state_cached, state_remember
from tests.api.client import Api, code
from tests.api.talk import TURNS, answer, push, request, whole_turn
from tests.api.test_query_counts import statements

# Real commits: within a transaction of the test, every push would lock the session.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("session")]


def test_the_second_push_takes_one_statement(api: Api) -> None:
    *_, read, _write = statements(lambda: push(api, whole_turn(0)))
    assert read.startswith("SELECT s.xmin::text")
    [write] = statements(lambda: push(api, whole_turn(1), usage={"input_tokens": 900}))
    assert write.startswith("WITH session AS")
    assert [turn.index for turn in Turn.objects.order_by("index")] == [0, 1]


def test_a_push_after_one_by_another_process_is_stored(api: Api) -> None:
    push(api, whole_turn(0))
    known = state_cached(AgentSession.objects.get().pk)
    assert known is not None
    push(api, whole_turn(1))
    state_remember(known)  # the cached state of a process that did not store the second turn
    assert push(api, whole_turn(2)) | {"prompt": None} == {
        "turn": 2,
        "positions": {"first": 8, "last": 11},
        "prompt": None,
        "cost_microusd": None,
        "fired": [],
        "output_spike": None,
        "redacted": [],
    }
    assert list(Message.objects.order_by("position").values_list("position", flat=True)) == list(range(12))
    assert push(api, whole_turn(3))["turn"] == 3


def test_a_new_budget_applies_to_the_next_push(api: Api) -> None:
    for number in range(3):
        assert push(api, whole_turn(number))["fired"] == []
    AgentSession.objects.update(budget_tokens=1_000)
    [fired] = push(api, whole_turn(3))["fired"]
    assert (fired["trigger"], fired["state"]) == ("hard", "done")
    assert push(api, [request()])["turn"] == 4


@pytest.mark.slow
def test_counting_continues_after_a_compaction_and_a_revert(api: Api) -> None:
    for number in range(12):
        push(api, whole_turn(number))
    number = api.post("sessions/s1/compact/", {"policy": {"target": 0.1}}).json()["number"]
    assert push(api, [request()])["prompt"]["tokens"] == api.get("sessions/s1/prompt/").json()["tokens"]
    api.post(f"sessions/s1/compactions/{number}/revert/")
    assert push(api, [answer()])["prompt"]["tokens"] == api.get("sessions/s1/prompt/").json()["tokens"]


def test_a_revoked_key_stores_nothing(api: Api) -> None:
    push(api, whole_turn(0))
    push(api, whole_turn(1))
    ApiKey.objects.update(revoked_at=timezone.now())
    response = api.post(TURNS, {"messages": whole_turn(2)})
    assert response.status_code == 401
    assert Turn.objects.count() == 2


@pytest.mark.slow
def test_retries_stale_writers_and_deletions_are_reported(api: Api) -> None:
    push(api, whole_turn(0))
    body: dict[str, Any] = {"messages": whole_turn(1)}
    first = api.post(TURNS, body, idempotency_key="k1")
    again = api.post(TURNS, body, idempotency_key="k1")
    assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")
    reused = api.post(TURNS, {"messages": whole_turn(2)}, idempotency_key="k1")
    assert (reused.status_code, code(reused)) == (422, "idempotency_mismatch")
    stale = api.post(TURNS, {"messages": whole_turn(2), "expected_turn": 1})
    assert (stale.status_code, code(stale)) == (409, "stale_turn")
    assert push(api, whole_turn(2), expected_turn=2)["turn"] == 2
    AgentSession.objects.all().delete()
    assert api.post(TURNS, body).status_code == 404
