"""Calls of a reconciled history: each is counted once, and its response may be continued."""

from __future__ import annotations

from typing import Any

import pytest

from sessions.models import AgentSession
from tests.api.client import Api, code
from tests.api.talk import output

pytestmark = pytest.mark.django_db

JSON = dict[str, Any]
URL = "sessions/r1/reconcile/"
USAGE = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}


def asked(text: str) -> JSON:
    return {"type": "message", "role": "user", "content": text}


def called(number: int) -> list[JSON]:
    """Return the items of a response that calls a tool."""
    item = {"type": "function_call", "call_id": f"c{number}", "name": "read", "arguments": "{}"}
    return [{"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "x"}, item]


def done(number: int, text: str = "Done.") -> JSON:
    return {"type": "function_call_output", "call_id": f"c{number}", "output": text}


@pytest.fixture(autouse=True)
def _session(api: Api) -> None:
    api.post("sessions/", {"id": "r1", "format": "openai-responses", "model": "gpt-5.1"})


def reconcile(api: Api, *messages: JSON, **fields: Any) -> JSON:
    response = api.post(URL, {"messages": list(messages), **fields})
    assert response.status_code == 200, response.content
    found: JSON = response.json()
    return found


def test_messages_that_follow_a_response(api: Api) -> None:
    reconcile(api, asked("Read."), *called(1), usage=USAGE, response_id="resp_1")
    reconcile(api, done(1), previous_response_id="resp_1")
    served = reconcile(
        api, done(1), *called(2), previous_response_id="resp_1", usage=USAGE, response_id="resp_2"
    )
    assert served["reconciled"]["status"] == "appended"
    served = reconcile(api, done(2), previous_response_id="resp_2")
    assert served["messages"] == [asked("Read."), *called(1), done(1), *called(2), done(2)]
    session = AgentSession.objects.get()
    assert (session.message_count, session.output_tokens) == (7, 40)


def test_a_response_that_is_continued_in_another_way_is_forked(api: Api) -> None:
    reconcile(api, asked("Read."), *called(1), done(1), usage=USAGE, response_id="resp_1")
    served = reconcile(api, done(1, "Failed."), previous_response_id="resp_1")
    assert served["reconciled"]["status"] == "forked"
    assert served["messages"] == [asked("Read."), *called(1), done(1, "Failed.")]


@pytest.mark.slow
def test_a_response_is_continued_although_a_fork_ends_before_it(api: Api) -> None:
    reconcile(api, asked("Read."), *called(1), response_id="resp_1")
    reconcile(api, done(1), *called(2), previous_response_id="resp_1", response_id="resp_2")
    assert reconcile(api, done(1), previous_response_id="resp_1")["reconciled"]["status"] == "forked"
    reconcile(api, done(2), previous_response_id="resp_2")
    served = reconcile(api, done(2, "Failed."), previous_response_id="resp_2")
    assert served["messages"] == [asked("Read."), *called(1), done(1), *called(2), done(2, "Failed.")]


def test_messages_that_follow_a_response_are_compacted(api: Api) -> None:
    AgentSession.objects.update(budget_tokens=3_000)
    reconcile(api, asked("Read."), *called(0), response_id="resp_0")
    for number in range(6):
        new = [done(number, output(number, 60)), *called(number + 1)]
        previous, answered = f"resp_{number}", f"resp_{number + 1}"
        served = reconcile(api, *new, previous_response_id=previous, response_id=answered)
        assert served["fits"]
    assert served["compactions"] > 0
    assert served["turn"] == 6


def test_an_unknown_response_is_rejected(api: Api) -> None:
    reconcile(api, asked("Read."), *called(1), response_id="resp_1")
    response = api.post(URL, {"messages": [done(1)], "previous_response_id": "resp_x"})
    assert (response.status_code, code(response)) == (400, "invalid_field")
    assert response.json()["error"]["param"] == "previous_response_id"


@pytest.mark.parametrize("ids", [{}, {"response_id": "resp_1"}], ids=["usage", "id"])
def test_the_usage_of_a_stored_response_is_counted_once(api: Api, ids: JSON) -> None:
    """The client sends the usage of its last response before and after its own next message."""
    history = [asked("Read."), *called(1)]
    for _ in range(2):
        reconcile(api, *history, usage=USAGE, **ids)
    reconcile(api, *history, done(1), usage=USAGE, **ids)
    session = AgentSession.objects.get()
    assert (session.message_count, session.turn_count, session.output_tokens) == (4, 2, 20)


def test_usage_that_arrives_after_its_response_belongs_to_that_turn(api: Api) -> None:
    reconcile(api, asked("Read."), *called(1))
    reconcile(api, asked("Read."), *called(1), done(1), usage=USAGE)
    session = AgentSession.objects.get()
    first, second = session.turns.order_by("index")
    assert (first.output_tokens, second.output_tokens, session.output_tokens) == (20, None, 20)
    assert session.cost_microusd == first.cost_microusd
