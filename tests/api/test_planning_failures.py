"""A push is stored and its prompt fits even if planning a compaction fails."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from compaction.context import Context
from compaction.strategies import STRATEGIES, StepResult
from compaction.view import View
from sessions.models import Turn
from sessions.services.compactions import long_histories, planning
from tests.api.client import Api
from tests.api.talk import call, openai_turn, output, prompt, push, request, result, whole_turn

pytestmark = pytest.mark.django_db


def nested(depth: int, inner: str = '"src/app.py"') -> str:
    return '{"a":' * depth + inner + "}" * depth


def deep_turn(number: int, depth: int) -> list[dict[str, Any]]:
    """Return an OpenAI turn whose arguments and output are JSON text that is nested `depth` levels deep."""
    turn = openai_turn(number)
    turn[1]["tool_calls"][0]["function"]["arguments"] = nested(depth)
    turn[2]["content"] = nested(depth, json.dumps("line\n" * 4_000))
    return turn


@pytest.mark.parametrize(
    "depth",
    [20_000, *(pytest.param(depth, marks=pytest.mark.slow) for depth in (101, 255, 400, 1_000, 1_024))],
)
def test_deeply_nested_arguments_and_outputs_are_compacted(api: Api, depth: int) -> None:
    api.post("sessions/", {"id": "deep", "format": "openai", "budget": {"input_tokens": 3_000}})
    fired = [push(api, deep_turn(number, depth), session="deep")["fired"] for number in range(4)]
    assert {(one["trigger"], one["state"]) for turn in fired for one in turn} == {("hard", "done")}
    assert api.post("sessions/deep/compact/", {}).json()["state"] in {"done", "skipped"}
    for format in ("openai", "anthropic"):
        assert prompt(api, f"?format={format}", session="deep")["messages"]


def fail(view: View, context: Context) -> StepResult:
    raise RecursionError("never shown: sk-secret")


@pytest.fixture
def broken_clip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STRATEGIES, "clip", replace(STRATEGIES["clip"], run=fail))


@pytest.mark.slow
@pytest.mark.usefixtures("broken_clip")
def test_a_failed_plan_is_recorded_and_cheaper_steps_make_the_prompt_fit(api: Api) -> None:
    api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 2_000}, "policy": {"soft": 0}})
    fired = [push(api, whole_turn(number))["fired"] for number in range(8)]
    [failed, served] = next(turn for turn in fired if turn)
    assert (failed["trigger"], failed["state"]) == ("hard", "failed")
    assert failed["reason"].startswith("planning failed (RecursionError)")
    assert (served["trigger"], served["state"]) == ("hard", "done")
    assert Turn.objects.count() == 8
    data = prompt(api)
    assert data["fits"]
    record = api.get(f"sessions/s1/compactions/{served['compaction']}/").json()["record"]
    assert {step["name"] for step in record["steps"]} <= {"drop_oldest", "shed", "last_resort"}
    assert "sk-secret" not in api.get("sessions/s1/compactions/").content.decode()


@pytest.mark.slow
@pytest.mark.usefixtures("broken_clip")
def test_a_failed_manual_compaction_reports_the_reason_and_changes_nothing(api: Api) -> None:
    api.post("sessions/", {"id": "s1", "policy": {"soft": 0}})
    for number in range(8):
        push(api, whole_turn(number))
    before = prompt(api)["messages"]
    done = api.post("sessions/s1/compact/", {"policy": {"target": 0.01}})
    assert (done.status_code, done.json()["state"]) == (200, "failed")
    assert "planning failed" in done.json()["reason"]
    assert prompt(api)["messages"] == before
    assert push(api, [request()])["turn"] == 8


@pytest.mark.slow
def test_a_push_is_stored_when_no_step_can_be_planned(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, strategy in list(STRATEGIES.items()):
        monkeypatch.setitem(STRATEGIES, name, replace(strategy, run=fail))
    api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 2_000}, "policy": {"soft": 0}})
    fired = [push(api, whole_turn(number))["fired"] for number in range(8)]
    assert {one["state"] for turn in fired for one in turn} == {"failed"}
    assert Turn.objects.count() == 8
    data = prompt(api)
    assert not data["fits"]
    assert data["reason"]


@pytest.mark.usefixtures("broken_clip")
def test_a_failed_preview_reports_the_reason(api: Api, member_client: Client) -> None:
    api.post("sessions/", {"id": "s1", "policy": {"soft": 0}})
    for number in range(8):
        push(api, whole_turn(number))
    response = api.post("sessions/s1/compact/", {"preview": True, "policy": {"target": 0.01}})
    shown = response.json()
    assert (response.status_code, shown["state"], shown["edits"]) == (200, "failed", [])
    assert shown["reason"].startswith("planning failed (RecursionError)")
    assert api.get("sessions/s1/compactions/").json()["data"] == []


@pytest.mark.parametrize("preview", [True, False])
def test_a_plan_that_takes_too_long_fails(api: Api, monkeypatch: pytest.MonkeyPatch, preview: bool) -> None:
    api.post("sessions/", {"id": "s1", "policy": {"soft": 0}})
    for number in range(8):
        push(api, whole_turn(number))
    monkeypatch.setattr(planning, "PLAN_SECONDS", -1.0)
    shown = api.post("sessions/s1/compact/", {"preview": preview, "policy": {"target": 0.01}}).json()
    assert shown["state"] == "failed"
    assert "OutOfTime" in shown["reason"]


@pytest.mark.usefixtures("broken_clip")
def test_the_page_reports_a_failed_preview(api: Api, member_client: Client) -> None:
    id = api.post("sessions/", {"id": "s1", "policy": {"soft": 0, "target": 0.01}}).json()["id"]
    for number in range(8):
        push(api, whole_turn(number))
    address = reverse("session_compact_preview", args=["alpha", id])
    assert "Planning the compaction" in member_client.get(address).text
    response = member_client.get(f"{address}?plan=1")
    assert response.status_code == 200
    assert "could not be planned" in response.text


class TestLongHistories:
    @pytest.fixture(autouse=True)
    def short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Treat prompts of more than 40 messages as very long."""
        monkeypatch.setattr(long_histories, "MAX_MESSAGES", 40)
        monkeypatch.setattr(long_histories, "KEPT_MESSAGES", 12)

    @pytest.mark.slow
    def test_old_messages_are_removed_without_being_read(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        api.post("sessions/", {"id": "s1", "format": "openai", "policy": {"soft": 0}})
        reminder = request("<system-reminder>Be brief.</system-reminder>")
        push(
            api,
            [reminder, request("Read the files."), {"role": "system", "content": "Two sub-agents exist."}],
        )
        for number in range(14):
            push(api, openai_turn(number))
        pinned = api.call("PUT", "sessions/s1/messages/7/pin/").status_code
        assert pinned in {200, 201, 204}
        read: list[int] = []
        load = planning.messages_load

        def counted(session_id: Any, spans: Any) -> Any:
            rows = load(session_id, spans)
            read.append(len(rows))
            return rows

        monkeypatch.setattr(planning, "messages_load", counted)
        preview = api.post("sessions/s1/compact/", {"preview": True}).json()
        done = api.post("sessions/s1/compact/", {}).json()
        assert (preview["state"], done["state"]) == ("preview", "done")
        assert max(read) < 25
        assert done["edits"][0]["strategy"] == "drop_oldest"
        assert done["tokens_after"] < done["tokens_before"]
        assert done["record"]["steps"][0]["name"] == "drop_oldest"
        data = prompt(api)
        shown = json.dumps(data["messages"])
        assert "Read the files." in shown
        assert "Two sub-agents exist." in shown
        assert "Please read file 1." in shown  # pinned
        assert "Please read file 3." not in shown
        assert "Please read file 13." in shown
        assert data["messages"] == prompt(api)["messages"]
        validity = api.post("prompts/validate/", {"messages": data["messages"], "format": "openai"})
        assert validity.json()["violations"] == []
        reverted = api.post("sessions/s1/compactions/1/revert/")
        assert reverted.json()["state"] == "reverted"

    @pytest.mark.slow
    def test_the_latest_request_is_one_that_the_client_still_sends(self, api: Api) -> None:
        """The client ends each request with a message that it does not send again."""
        api.post("sessions/", {"id": "s1", "format": "anthropic", "policy": {"soft": 0}})
        said = [*whole_turn(0, lines=4), request("Now read all other files.")]
        for number in range(1, 16):
            once = [] if number == 15 else [request(f"Only {99 - number} calls are left.")]
            api.post("sessions/s1/reconcile/", {"messages": [*said, *once]})
            name = f"toolu_{number:05}"
            push(api, [call(name)])
            said += [call(name), result(name, output(number))]
        api.post("sessions/s1/reconcile/", {"messages": said})
        before = prompt(api)["tokens"]
        done = api.post("sessions/s1/compact/", {}).json()
        assert (done["state"], done["tokens_before"]) == ("done", before)
        shown = json.dumps(prompt(api)["messages"])
        assert "Now read all other files." in shown
        assert "calls are left" not in shown

    @pytest.mark.slow
    def test_the_latest_request_is_found_without_a_look_up_for_each_message(self, api: Api) -> None:
        api.post("sessions/", {"id": "s1", "format": "anthropic", "policy": {"soft": 0}})
        push(api, [request("Read all files.")])
        for number in range(120):
            push(api, [call(f"toolu_{number:05}"), result(f"toolu_{number:05}", "text")])
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE agent_sessions_message")
            before = _look_ups(cursor)
            assert api.post("sessions/s1/compact/", {"preview": True}).json()["state"] == "preview"
            assert _look_ups(cursor) - before < 60


def _look_ups(cursor: Any) -> int:
    """Return how many times this transaction has searched an index of the messages."""
    cursor.execute("SELECT idx_scan FROM pg_stat_xact_user_tables WHERE relname = 'agent_sessions_message'")
    return int(cursor.fetchone()[0] or 0)
