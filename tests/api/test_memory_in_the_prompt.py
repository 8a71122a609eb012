"""Working memory in prompts over HTTP: current at each compaction, unchanged in between and later."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.client import Api
from tests.api.talk import PROMPT, history, openai_turn, prompt, push, reconcile, whole_turn

MEMORY = "sessions/s1/memory/"
DECISION = "parcels over 30 kg go by freight"
LATER = "the tariff of 2027 applies"
TURN = {"anthropic": whole_turn, "openai": openai_turn}


def session(api: Api, policy: Any, *, format: str = "anthropic", budget: int = 8_000) -> None:
    fields = {"id": "s1", "policy": policy, "format": format, "budget": {"input_tokens": budget}}
    assert api.post("sessions/", fields).status_code == 201


def decide(api: Api, *decisions: str) -> None:
    revision = api.get(MEMORY).json()["revision"]
    response = api.patch(f"{MEMORY}?author=person", {"decisions": decisions}, if_match=f'"{revision}"')
    assert response.status_code == 200, response.content


def compact(api: Api) -> dict[str, Any]:
    done: dict[str, Any] = api.post("sessions/s1/compact/", {}).json()
    assert done["state"] == "done", done
    return done


def memories(served: dict[str, Any]) -> list[str]:
    """Return the messages of a prompt that contain a working memory."""
    return [str(message) for message in served["messages"] if "[Working memory]" in str(message)]


@pytest.mark.slow
@pytest.mark.parametrize("format", ["anthropic", "openai"])
@pytest.mark.parametrize("policy", ["balanced", "aggressive", "masking", "baseline"])
def test_a_decision_reaches_the_prompt_at_the_next_compaction(api: Api, policy: str, format: str) -> None:
    session(api, policy, format=format)
    for number in range(12):
        push(api, TURN[format](number))
    before = prompt(api)["compactions"]
    decide(api, DECISION)
    assert all(DECISION not in shown for shown in memories(prompt(api)))
    number = 12
    while prompt(api)["compactions"] == before:
        push(api, TURN[format](number))
        number += 1
    for query in ("", "?format=anthropic", "?format=openai"):
        served = prompt(api, query)
        [shown] = memories(served)
        assert DECISION in shown
        assert served["fits"]


@pytest.mark.slow
def test_only_a_compaction_changes_it(api: Api) -> None:
    session(api, "masking")
    for number in range(12):
        push(api, whole_turn(number))
    decide(api, DECISION)
    compact(api)
    before = prompt(api)["messages"]
    decide(api, DECISION, LATER)
    push(api, whole_turn(20))
    after = prompt(api)["messages"]
    assert after[: len(before)] == before
    assert len(after) == len(before) + 4


@pytest.mark.slow
def test_free_steps_refresh_it_and_past_prompts_keep_the_old_one(api: Api) -> None:
    session(api, {"preset": "balanced", "soft": 0, "target": 0.75}, budget=12_000)
    decide(api, DECISION)
    for number in range(20):
        push(api, whole_turn(number))
    assert prompt(api)["compactions"]
    past = [api.get(f"{PROMPT}?at_turn={turn}").content for turn in range(19)]
    for number in range(20, 23):
        push(api, whole_turn(number, lines=110))
    last = api.get(PROMPT).json()["messages"]
    push(api, whole_turn(23, lines=110))
    decide(api, LATER)
    done = compact(api)
    assert not {"recap", "drop_oldest", "shed", "last_resort"} & set(done["record"]["strategies"]), done
    [shown] = memories(prompt(api))
    assert LATER in shown
    assert DECISION not in shown
    assert [api.get(f"{PROMPT}?at_turn={turn}").content for turn in range(19)] == past
    assert api.get(f"{PROMPT}?at_turn=22").json()["messages"] == last


@pytest.mark.slow
def test_reverting_removes_it(api: Api) -> None:
    session(api, "baseline")
    decide(api, DECISION)
    for number in range(20):
        push(api, whole_turn(number))
    assert memories(prompt(api))
    number = prompt(api)["compactions"]
    while number:
        api.post(f"sessions/s1/compactions/{number}/revert/")
        number -= 1
    assert memories(prompt(api)) == []


@pytest.mark.slow
def test_it_is_counted_and_named_in_the_manifest(api: Api) -> None:
    session(api, "balanced")
    decide(api, DECISION)
    for number in range(12):
        push(api, whole_turn(number))
    done = compact(api)
    assert done["record"]["components"]["after"]["memory"] > 0
    assert done["record"]["memory_revision"] == 1
    served = prompt(api, "?manifest=1")
    rules = [entry["rule"] for entry in served["manifest"]]
    assert rules[:2] == ["verbatim", "memory"]
    assert rules.count("memory") == 1
    assert served["tokens"] == sum(entry["tokens"] for entry in served["manifest"])


@pytest.mark.slow
def test_the_latest_memory_replaces_the_one_in_the_prompt(api: Api) -> None:
    session(api, "masking")
    decide(api, DECISION)
    for number in range(12):
        push(api, whole_turn(number))
    compact(api)
    decide(api, LATER)
    served = prompt(api, "?memory=latest")
    [shown] = memories(served)
    assert LATER in shown
    assert DECISION not in shown
    assert len(served["messages"]) == len(prompt(api)["messages"])


@pytest.mark.slow
def test_a_recap_written_by_a_person_keeps_it_current(api: Api) -> None:
    session(api, {"soft": 0, "hard": 0, "tail_share": 0.05, "target": 0.1})
    decide(api, DECISION)
    for number in range(14):
        push(api, whole_turn(number))
    done = compact(api)
    assert "[Working memory]" not in done["recap"]
    decide(api, LATER)
    address = f"sessions/s1/compactions/{done['number']}/recap/"
    assert api.post(address, {"text": "- zone 4 is closed"}).status_code == 200
    [shown] = memories(prompt(api))
    assert LATER in shown
    assert "zone 4 is closed" in str(prompt(api)["messages"])


SUMMARY = {"role": "user", "content": "Summary: we read three files."}


@pytest.mark.parametrize(
    ("sent", "fields", "at"),
    [
        ([SUMMARY], {"compacted": True}, 0),
        ([*history(1), SUMMARY], {"compacted": True}, 1),
        ([*history(3)[4:], whole_turn(3)[0]], {}, 1),
    ],
    ids=["replaced", "continued", "trimmed"],
)
def test_a_compaction_by_the_client_keeps_the_memory(
    api: Api, sent: list[dict[str, Any]], fields: dict[str, Any], at: int
) -> None:
    session(api, "balanced")
    reconcile(api, history(3))
    decide(api, DECISION)
    served = reconcile(api, sent, **fields)
    assert served["reconciled"]["status"] == "compacted"
    shown = served["messages"].pop(at)
    assert DECISION in str(shown)
    assert served["messages"] == sent
    further = reconcile(api, [*sent, whole_turn(3)[-1], whole_turn(4)[0]])
    assert further["messages"].pop(at) == shown
    assert further["messages"] == [*sent, whole_turn(3)[-1], whole_turn(4)[0]]
    assert prompt(api, "?at_turn=1")["messages"] == [*sent[:at], shown, *sent[at:]]
    assert memories(prompt(api, "?at_turn=0")) == []
    assert api.post("sessions/s1/compactions/1/revert/").status_code == 200
    assert memories(prompt(api)) == []
