"""Histories that are appended with one statement, while the session changes in other ways."""

from __future__ import annotations

import json
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from accounts.models import ApiKey
from sessions.models import AgentSession, ServedPrompt, Turn
from tests.api.client import Api
from tests.api.statements import statements
from tests.api.talk import (
    HANDLE,
    History,
    answer,
    call,
    history,
    push,
    reconcile,
    request,
    result,
    whole_turn,
)

# Real commits: within a transaction of the test, every request would lock the session.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("session")]


def test_an_append_takes_one_statement_and_returns_the_prompt(api: Api) -> None:
    reconcile(api, history(1), system="Be brief.")
    reconcile(api, history(2), system="Be brief.")
    usage = {"input_tokens": 400, "output_tokens": 7}
    found = []
    [write] = statements(
        lambda: found.append(reconcile(api, history(3), system="Be brief.", usage=usage))  # type: ignore[func-returns-value]
    )
    assert write.startswith("WITH session AS")
    assert found[0]["reconciled"]["status"] == "appended"
    assert found[0]["messages"] == history(3)
    assert ServedPrompt.objects.get().turn == 2
    assert {**found[0], "reconciled": None} == {**api.get("sessions/s1/prompt/").json(), "reconciled": None}
    assert reconcile(api, history(3), system="Be brief.")["reconciled"]["status"] == "unchanged"
    assert reconcile(api, history(4), system="Be brief.")["messages"] == history(4)


@pytest.mark.slow
def test_an_append_that_fills_the_budget_compacts(api: Api) -> None:
    api.post("sessions/", {"id": "s2", "budget": {"input_tokens": 3_000}})
    sent: History = []
    for number in range(12):
        sent += whole_turn(number, lines=30)
        served = reconcile(api, sent, "s2")
        assert served["fits"]
        shown = api.get("sessions/s2/prompt/").json()
        assert {**served, "reconciled": None} == {**shown, "reconciled": None}
    assert served["compactions"] > 1
    assert Turn.objects.count() == 12


def test_nothing_is_appended_to_a_deleted_session_or_with_a_revoked_key(api: Api) -> None:
    for turns in (1, 2):
        reconcile(api, history(turns))
    ApiKey.objects.update(revoked_at=timezone.now())
    assert api.post("sessions/s1/reconcile/", {"messages": history(3)}).status_code == 401
    assert Turn.objects.count() == 2
    ApiKey.objects.update(revoked_at=None)
    AgentSession.objects.all().delete()
    assert api.post("sessions/s1/reconcile/", {"messages": history(3)}).status_code == 404


class Pair:
    """Two sessions with the same requests. Those of the second have idempotency keys, so they lock it."""

    def __init__(self, api: Api, seed: int) -> None:
        self.api, self.random, self.number = api, Random(seed), 0
        self.sent: History = []
        self.fields: dict[str, Any] = {"system": "Be brief."}
        for name in ("fast", "locked"):
            api.post("sessions/", {"id": name, "policy": {"preset": "off"}})

    def step(self) -> None:
        self.number += 1
        kinds = ["append"] * 6 + [
            "again", "edit", "push", "compact", "system", "breakpoint", "side", "drop", "usage", "secret",
        ]  # fmt: skip
        getattr(self, self.random.choice(kinds))()

    def append(self) -> None:
        self.sent += whole_turn(self.number, lines=self.random.choice([2, 8, 30]))[
            : self.random.choice([1, 4])
        ]
        if self.sent[-1]["role"] == "user" and self.random.random() < 0.5:
            name = f"toolu_x{self.number}"
            self.sent += [call(name, path="a"), result(name, "x = 1"), answer(f"Done {self.number}.")]
        self.again()

    def again(self) -> None:
        fast = reconcile(self.api, self.sent, "fast", **self.fields)
        locked = reconcile(self.api, self.sent, "locked", key=uuid4().hex, **self.fields)
        assert comparable(fast) == comparable(locked)

    def edit(self) -> None:
        if self.sent:
            self.sent = [*self.sent[:-1], request(f"Rather file {self.number}."), answer("It is empty.")]
            self.again()

    def push(self) -> None:
        said = [request(f"Pushed {self.number}."), answer("Yes.")]
        for name in ("fast", "locked"):
            push(self.api, said, name)
        self.sent += said
        self.append()

    def compact(self) -> None:
        for name in ("fast", "locked"):
            self.api.post(f"sessions/{name}/compact/", {"policy": {"target": 0.1}})
        self.append()

    def system(self) -> None:
        self.fields["system"] = f"Be brief, {self.number}."
        self.append()

    def breakpoint(self) -> None:
        self.append()
        content = self.sent[-1]["content"]
        if isinstance(content, list):
            content[-1]["cache_control"] = {"type": "ephemeral"}
        self.again()

    def side(self) -> None:
        asked = [request(f"Write a title for: Please read file {self.number}.")]
        sent, self.sent = self.sent, [*self.sent, *asked] if self.random.random() < 0.5 else asked
        self.again()
        self.sent = sent
        self.append()

    def drop(self) -> None:
        self.sent = self.sent[len(self.sent) // 2 :] or self.sent
        self.append()

    def usage(self) -> None:
        self.fields["usage"] = {"input_tokens": 100 * self.number, "output_tokens": 7}
        self.append()
        del self.fields["usage"]

    def secret(self) -> None:
        self.sent.append(request(f"The key is AKIA{self.number:016}."))
        self.append()


def comparable(served: dict[str, Any]) -> dict[str, Any]:
    """Return the response without what differs between two sessions: their ids and handles.

    The length of a recap depends on the tokens of the handles in it.
    """
    found: dict[str, Any] = json.loads(HANDLE.sub("h", json.dumps(served)))
    found["reconciled"]["session"] = ""
    if found["compactions"]:
        for message in found["messages"]:
            if "[Recap of turns" in json.dumps(message):
                message["content"] = "recap"
        found |= {"tokens": 0, "occupancy": 0}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_appends_with_and_without_a_lock_have_the_same_result(api: Api, seed: int) -> None:
    pair = Pair(api, seed)
    for _ in range(25):
        pair.step()
    fast, locked = (
        list(
            Turn.objects.filter(session__external_id=name)
            .order_by("index")
            .values_list("index", "message_count", "prompt_estimate", "prompt_reported", "budget")
        )
        for name in ("fast", "locked")
    )
    assert fast == locked


def test_a_session_that_another_process_deleted_and_recreated(api: Api) -> None:
    reconcile(api, history(1))
    reconcile(api, history(2))  # caches the session with its format
    AgentSession.objects.get().delete()
    assert api.post("sessions/", {"id": "s1"}).status_code == 201
    assert reconcile(api, history(1))["messages"] == history(1)
