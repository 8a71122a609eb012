"""`PATCH sessions/{id}/`: change the policy or the budget of a session."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import AuditEvent
from sessions.models import AgentSession, Compaction
from tests.api.client import Api, code
from tests.api.talk import prompt, push, request, whole_turn
from tests.plugins.reused import reused

SESSION = "sessions/s/"


@reused(autouse=True)
def session(api: Api) -> None:
    """A session `s` without triggers, whose eight turns exceed its budget."""
    api.post("sessions/", {"id": "s", "budget": {"input_tokens": 2_500}, "policy": "off"})
    for number in range(8):
        push(api, whole_turn(number), session="s")


def change(api: Api, policy: Any) -> dict[str, Any]:
    response = api.patch(SESSION, {"policy": policy})
    assert response.status_code == 200, response.content
    changed: dict[str, Any] = response.json()
    return changed


def test_the_prompt_does_not_change_until_the_next_compaction(api: Api) -> None:
    before = api.get(f"{SESSION}prompt/")
    assert change(api, "masking")["policy"] == {"preset": "masking"}
    after = api.get(f"{SESSION}prompt/")
    assert (after.content, after.headers["ETag"]) == (before.content, before.headers["ETag"])
    assert after.json()["fits"] is False


def test_the_next_push_compacts_under_the_new_policy(api: Api) -> None:
    assert push(api, whole_turn(8), session="s")["fired"] == []
    change(api, {"preset": "masking", "target": 0.3})
    [fired] = push(api, whole_turn(9), session="s")["fired"]
    assert (fired["trigger"], fired["state"]) == ("hard", "done")
    record = api.get(f"{SESSION}compactions/1/").json()["record"]
    assert (record["policy"], record["target"]) == ("masking", 750)
    assert prompt(api, session="s")["fits"]


def test_settings_that_an_earlier_version_accepted_do_not_fail_pushes(api: Api) -> None:
    api.post("sessions/", {"id": "old", "budget": {"input_tokens": 2_500}})
    tools = [{"pattern": "read_file", "exempt": "false"}]
    policy = {"preset": "masking", "target": 0.3, "recap_span_share": 2, "tools": tools}
    AgentSession.objects.filter(external_id="old").update(policy=policy)
    [fired] = push(api, [message for n in range(9) for message in whole_turn(n)], session="old")["fired"]
    assert (fired["trigger"], fired["state"]) == ("hard", "done")
    assert prompt(api, session="old")["fits"]


@pytest.mark.slow
def test_past_prompts_do_not_change(api: Api) -> None:
    change(api, "balanced")
    push(api, whole_turn(8), session="s")
    served = {turn: api.get(f"{SESSION}prompt/?at_turn={turn}").content for turn in range(8)}
    change(api, {"preset": "aggressive", "collapse_tokens": 50})
    push(api, whole_turn(9), session="s")
    assert {turn: api.get(f"{SESSION}prompt/?at_turn={turn}").content for turn in range(8)} == served


def test_a_compaction_in_progress_keeps_its_policy(api: Api) -> None:
    push(api, whole_turn(8), session="s")
    change(api, "masking")
    api.post(f"{SESSION}compact/")
    change(api, "off")
    assert Compaction.objects.get().policy["name"] == "masking"


def test_settings_without_a_preset_override_the_projects_default(api: Api, project: Any) -> None:
    project.default_policy = {"preset": "aggressive"}
    project.save()
    assert change(api, {"target": 0.2})["policy"] == {"preset": "aggressive", "target": 0.2}


def test_a_change_is_audited_once(api: Api) -> None:
    change(api, "masking")
    change(api, "masking")
    event = AuditEvent.objects.get(action="session.policy_changed")
    assert event.target == "s"
    assert event.detail["default_policy"] == {"from": {"preset": "off"}, "to": {"preset": "masking"}}


def change_budget(api: Api, tokens: int | None) -> dict[str, Any]:
    response = api.patch(SESSION, {"budget": None if tokens is None else {"input_tokens": tokens}})
    assert response.status_code == 200, response.content
    size: dict[str, Any] = response.json()["prompt"]
    return size


def test_a_larger_budget_applies_to_the_current_prompt(api: Api) -> None:
    before = prompt(api, session="s")
    assert before["fits"] is False
    assert change_budget(api, 50_000)["budget"] == 50_000
    after = prompt(api, session="s")
    assert after["messages"] == before["messages"]
    assert (after["budget"], after["fits"], after["reason"]) == (50_000, True, None)
    assert api.get(f"{SESSION}prompt/?at_turn=6").json()["budget"] == 2_500


def test_the_next_push_compacts_to_a_smaller_budget(api: Api) -> None:
    change_budget(api, 50_000)
    change(api, "balanced")
    assert push(api, whole_turn(8), session="s")["fired"] == []
    change_budget(api, 2_000)
    assert prompt(api, session="s")["fits"] is False
    [fired] = push(api, whole_turn(9), session="s")["fired"]
    assert (fired["trigger"], fired["state"]) == ("hard", "done")
    after = prompt(api, session="s")
    assert (after["budget"], after["fits"]) == (2_000, True)


def test_the_reason_names_the_new_budget(api: Api) -> None:
    change_budget(api, 10)
    change(api, "balanced")
    push(api, [request("Which handlers are in file 3, and which are in file 4?")], session="s")
    assert "exceed the budget of 10:" in prompt(api, session="s")["reason"]
    change_budget(api, 1)  # the recorded reason begins like one for this budget
    assert "exceed the budget of 1, and no compaction" in prompt(api, session="s")["reason"]


def test_without_a_budget_the_default_applies(api: Api) -> None:
    default = api.post("sessions/", {"id": "default"}).json()["prompt"]["budget"]
    assert change_budget(api, None)["budget"] == default


def test_a_change_of_the_budget_is_audited_once(api: Api) -> None:
    change_budget(api, 3_000)
    change_budget(api, 3_000)
    event = AuditEvent.objects.get(action="session.budget_changed")
    assert (event.target, event.detail["budget"]) == ("s", {"from": 2_500, "to": 3_000})


@pytest.mark.parametrize(
    ("body", "expected", "param"),
    [
        ({"budget": {"input_tokens": 0}}, "invalid_field", "budget.input_tokens"),
        ({"budget": 3_000}, "invalid_field", "budget"),
        ({"policy": {"target": 2}}, "invalid_field", "policy.target"),
        ({"policy": "tiny"}, "invalid_field", "policy.preset"),
        ({"policy": None}, "invalid_field", "policy"),
        ({"name": "x"}, "unknown_field", "name"),
    ],
)
def test_an_invalid_change_is_explained(api: Api, body: Any, expected: str, param: str) -> None:
    response = api.patch(SESSION, body)
    assert response.status_code == 400
    assert (code(response), response.json()["error"]["param"]) == (expected, param)
    assert api.get(SESSION).json()["policy"] == {"preset": "off"}


def test_it_requires_the_scope_push(reader_api: Api, stranger_api: Api) -> None:
    assert reader_api.patch(SESSION, {"policy": "off"}).status_code == 403
    assert stranger_api.patch(SESSION, {"policy": "off"}).status_code == 404
