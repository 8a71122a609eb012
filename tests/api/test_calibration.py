"""Prompts fit the budget in the provider's tokens, regardless of how the provider counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.api.client import Api
from tests.api.statements import statements
from tests.api.talk import push, whole_turn

pytestmark = pytest.mark.django_db

Count = Callable[[int], int]

#: Provider tokens of a prompt by its estimate.
PROVIDERS: dict[str, Count] = {
    "the estimate": lambda estimate: estimate,
    "1.25 x + 12,000": lambda estimate: round(1.25 * estimate + 12_000),
    "0.8 x": lambda estimate: round(0.8 * estimate),
}
CLAUDE, UNKNOWN = "claude-sonnet-4-5", "nobody-knows-it"


def served_sizes(
    api: Api, count: Count | None, *, session: str, budget: int, turns: int = 24, **fields: Any
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Run a session of an agent that sends each prompt that it fetches.

    Yields, before each call, the estimated size of the prompt and the answer to the fetch. With `count`, the
    agent reports usage.
    """
    body = {"id": session, "budget": {"input_tokens": budget}, **fields}
    assert api.post("sessions/", body).status_code == 201
    for number in range(turns):
        request, *rest = whole_turn(number, lines=15 + 70 * (number % 3))
        push(api, [request], session=session)
        for part in ([rest[0], rest[1]], [rest[2]]):
            served = api.get(f"sessions/{session}/prompt/").json()
            usage = {"usage": {"input_tokens": count(served["tokens"])}} if count else {}
            yield served["tokens"], served
            push(api, part, session=session, **usage)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "budget"), [(CLAUDE, 22_000), (UNKNOWN, 18_000)])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_prompt_fits_once_usage_is_reported(api: Api, provider: str, model: str, budget: int) -> None:
    count = PROVIDERS[provider]
    prompts = list(served_sizes(api, count, session="s1", budget=budget, model=model))
    assert api.get("sessions/s1/compactions/").json()["data"]
    assert [tokens for tokens, _ in prompts if count(tokens) > budget] == []
    assert all(served["fits"] for _, served in prompts)
    occupancies = [(count(tokens) / budget, served["occupancy"]) for tokens, served in prompts[10:]]
    assert all(data == pytest.approx(true, abs=0.03) for true, data in occupancies)


@pytest.mark.slow
def test_without_reports_the_prompts_of_a_known_family_fit_within_three_percent(api: Api) -> None:
    """The overhead cannot be known without a report."""
    for model, factor in ((CLAUDE, 1.25), ("deepseek-chat", 1.07), (UNKNOWN, 1.0), ("gpt-5", 1.0)):
        prompts = served_sizes(api, None, session=model, budget=8_000, model=model, turns=16)
        assert max(factor * tokens for tokens, _ in prompts) <= 1.03 * 8_000


@pytest.mark.slow
def test_the_first_prompt_of_a_session_fits_by_what_the_project_has_learned(api: Api) -> None:
    count, budget = PROVIDERS["1.25 x + 12,000"], 30_000
    for name in ("s1", "s2"):
        list(served_sizes(api, count, session=name, budget=budget, agent="coder", model=UNKNOWN, turns=8))
    large = [message for number in range(12) for message in whole_turn(number, lines=100)]
    # One knows its model from the beginning, the other from its first turn.
    api.post(
        "sessions/", {"id": "early", "budget": {"input_tokens": budget}, "agent": "coder", "model": UNKNOWN}
    )
    push(api, large, session="early")
    api.post("sessions/", {"id": "late", "budget": {"input_tokens": budget}, "agent": "coder"})
    push(api, large, session="late", model=UNKNOWN)
    for name in ("early", "late"):
        served = api.get(f"sessions/{name}/prompt/").json()
        calibration = api.get(f"sessions/{name}/").json()["calibration"]
        assert calibration["reports"] == 0
        assert calibration["factor"] == pytest.approx(1.25, abs=0.03)
        assert calibration["overhead"] == pytest.approx(12_000, rel=0.05)
        assert served["raw_tokens"] > budget - 12_000 > 0
        assert served["fits"]
        assert count(served["tokens"]) <= budget
    # Another agent sends another system prompt.
    api.post("sessions/", {"id": "other", "agent": "writer", "model": UNKNOWN})
    assert api.get("sessions/other/").json()["calibration"] == {"factor": 1.0, "overhead": 0, "reports": 0}


def test_a_prompt_fits_at_once_if_the_next_model_counts_more_tokens(api: Api) -> None:
    fields: dict[str, Any] = {"model": "gpt-4o", "budget": 12_000, "turns": 6}
    list(served_sizes(api, lambda estimate: estimate + 3_000, session="s1", **fields))
    assert 0.8 < api.get("sessions/s1/").json()["prompt"]["occupancy"] < 0.95
    push(api, [whole_turn(9)[0]], session="s1", model=CLAUDE)
    served = api.get("sessions/s1/prompt/").json()
    assert served["fits"]
    assert 1.25 * (served["tokens"] + 3_000) <= 12_000
    assert api.get("sessions/s1/").json()["calibration"]["overhead"] == pytest.approx(3_750, rel=0.05)


def test_a_session_reports_its_calibration(api: Api) -> None:
    created = api.post("sessions/", {"id": "s1", "model": CLAUDE}).json()
    assert created["calibration"] == {"factor": 1.25, "overhead": 0, "reports": 0}
    pushed = push(api, whole_turn(0), usage={"input_tokens": 40_000})
    shown = api.get("sessions/s1/").json()
    assert shown["calibration"]["reports"] == 1
    assert 39_000 < shown["calibration"]["overhead"] < 40_000
    expected = shown["calibration"]["factor"] * pushed["prompt"]["tokens"] + shown["calibration"]["overhead"]
    assert shown["prompt"]["occupancy"] * shown["prompt"]["budget"] == pytest.approx(expected, rel=0.01)
    [listed] = api.get("sessions/").json()["data"]
    assert listed["calibration"] == shown["calibration"]


@pytest.mark.slow
def test_a_single_odd_report_neither_compacts_nor_grows_the_prompt(api: Api) -> None:
    list(served_sizes(api, PROVIDERS["the estimate"], session="s1", budget=30_000, turns=6))
    before = api.get("sessions/s1/").json()["calibration"]
    for odd in (29_999, 400_000, 0, 30):
        assert push(api, whole_turn(90, lines=1), usage={"input_tokens": odd})["fired"] == []
        after = api.get("sessions/s1/").json()["calibration"]
        assert (after["factor"], after["overhead"]) == (before["factor"], before["overhead"])


def test_a_usage_report_takes_no_additional_statement(api: Api) -> None:
    api.post("sessions/", {"id": "s1", "model": CLAUDE, "policy": {"preset": "off"}})
    for number in range(2):
        push(api, whole_turn(number), usage={"input_tokens": 5_000 + 1_000 * number})
    found = statements(lambda: push(api, whole_turn(2), usage={"input_tokens": 7_000}, model=CLAUDE))
    bare = statements(lambda: push(api, whole_turn(3)))
    assert len(found) == len(bare)
