"""Tool definitions that were removed for lack of room, when there is room for them again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.client import Api
from tests.api.talk import call, output, request, result

pytestmark = pytest.mark.django_db

TURNS = "sessions/s/turns/"


def tools(words: int) -> list[dict[str, Any]]:
    return [{"name": "read", "description": "word " * words, "input_schema": {"type": "object"}}]


def talk(text: str) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": text}, {"role": "user", "content": "Go on."}]


def prompt(api: Api, query: str = "") -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"sessions/s/prompt/{query}").json()
    return found


@pytest.fixture(autouse=True)
def shed(api: Api) -> None:
    """A session whose prompt has no room for its tools."""
    settings = {"format": "anthropic", "budget": {"input_tokens": 4_000}, "policy": {"soft": 0}}
    api.post("sessions/", {"id": "s", **settings})
    api.post(TURNS, {"messages": [{"role": "user", "content": "hi " * 900}], "tools": tools(5_000)})
    assert "tools" not in prompt(api)


def test_tools_that_fit_are_restored_at_once(api: Api) -> None:
    pushed = api.post(TURNS, {"messages": talk("Yes."), "tools": tools(5)}).json()
    [fired] = pushed["fired"]
    assert fired["trigger"] == "restore"
    [made] = api.get("sessions/s/compactions/?limit=1").json()["data"]
    assert made["trigger"] == "restore"
    assert prompt(api)["tools"] == tools(5)
    assert prompt(api)["tokens"] == pushed["prompt"]["tokens"]


def test_tools_are_restored_with_the_first_call(api: Api) -> None:
    settings = {"format": "anthropic", "budget": {"input_tokens": 4_000}, "policy": {"soft": 0}}
    api.post("sessions/", {"id": "calls", **settings, "tools": tools(2_900)})
    turns = "sessions/calls/turns/"
    api.post(turns, {"messages": [request("word " * 1_300)]})
    assert "tools" not in api.get("sessions/calls/prompt/").json()
    called = [*talk("Yes."), call("t1"), result("t1", output(1, 10))]
    pushed = api.post(turns, {"messages": called}).json()
    assert [fired["trigger"] for fired in pushed["fired"]] == ["restore"]
    served = api.get("sessions/calls/prompt/").json()
    assert (served["tools"], served["fits"]) == (tools(2_900), True)
    assert api.post(turns, {"messages": [call("t2"), result("t2", output(2, 2))]}).json()["fired"] == []


def test_tools_that_do_not_fit_stay_removed(api: Api) -> None:
    pushed = api.post(TURNS, {"messages": talk("Yes."), "tools": tools(4_500)}).json()
    assert pushed["fired"] == []
    assert "tools" not in prompt(api)
    assert prompt(api)["fits"]


def test_tools_are_restored_by_the_first_push_after_the_budget_was_raised(api: Api) -> None:
    assert api.post(TURNS, {"messages": talk("Yes.")}).json()["fired"] == []
    api.patch("sessions/s/", {"budget": {"input_tokens": 50_000}})
    pushed = api.post(TURNS, {"messages": talk("No.")}).json()
    assert [fired["trigger"] for fired in pushed["fired"]] == ["restore"]
    assert prompt(api)["tools"] == tools(5_000)
    [made] = api.get("sessions/s/compactions/?limit=1").json()["data"]
    assert made["record"]["tokens_rebilled"] == made["tokens_after"] > made["tokens_before"]
    assert prompt(api)["tokens"] == pushed["prompt"]["tokens"]
    assert api.post(TURNS, {"messages": talk("Yes.")}).json()["fired"] == []


def test_tools_are_restored_when_the_model_counts_fewer_tokens(api: Api) -> None:
    """The first report shows that the provider counts far fewer tokens than estimated."""
    settings = {"format": "anthropic", "model": "claude-sonnet-5-5", "budget": {"input_tokens": 4_000}}
    api.post("sessions/", {"id": "counts", **settings, "tools": tools(3_200)})
    turns = "sessions/counts/turns/"
    api.post(turns, {"messages": [request("word " * 50)]})
    assert "tools" not in api.get("sessions/counts/prompt/").json()
    usage = {"input_tokens": 50, "output_tokens": 5}
    pushed = api.post(turns, {"messages": talk("Yes."), "usage": usage}).json()
    assert [fired["trigger"] for fired in pushed["fired"]] == ["restore"]
    served = api.get("sessions/counts/prompt/").json()
    assert (served["tools"], served["fits"]) == (tools(3_200), True)


@pytest.mark.slow
def test_a_later_revert_and_past_prompts_keep_the_restored_tools(api: Api) -> None:
    api.post(TURNS, {"messages": talk("Yes."), "tools": tools(5)})
    served = prompt(api)
    for number in range(7):
        api.post(TURNS, {"messages": talk(f"Answer {number}. " * 60)})
    before = prompt(api)
    policy = {"target": 0.1, "tail_messages": 1}
    made = api.post("sessions/s/compact/", {"policy": policy}).json()
    assert made["tokens_before"] == before["tokens"]
    assert "tools" in prompt(api)
    api.post(f"sessions/s/compactions/{made['number']}/revert/")
    assert prompt(api)["messages"] == before["messages"]
    assert prompt(api)["tools"] == tools(5)
    past = prompt(api, "?at_turn=1")
    assert (past["tools"], past["messages"], past["tokens"]) == (
        served["tools"],
        served["messages"],
        served["tokens"],
    )
