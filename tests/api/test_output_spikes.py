"""A spike of tool output is reported in the push's response, webhooks, metrics, the turn and the chart."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from accounts.models import Project
from sessions.models import AgentSession, WebhookDelivery
from tests.api.client import Api
from tests.api.talk import call, output, push, request, result, whole_turn
from tests.pages.served import address
from tests.plugins.reused import reused

USUAL, LARGE = 20, 400


@reused
def api(admin_api: Api) -> Api:
    return admin_api


def pushed_with_spike(api: Api) -> dict[str, Any]:
    """Push five usual turns and one with a large output. Return the last response."""
    api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 20_000}})
    for number in range(5):
        assert push(api, whole_turn(number, lines=USUAL))["output_spike"] is None
    return push(api, whole_turn(5, lines=LARGE))


@pytest.mark.django_db
class TestAnswer:
    def test_a_spike_is_in_the_answer(self, api: Api) -> None:
        pushed = pushed_with_spike(api)
        spike = pushed["output_spike"]
        assert spike["tokens"] > 4 * spike["mean"] > 0
        assert (spike["position"], spike["tool"]) == (pushed["positions"]["first"] + 2, "read_file")
        turns = api.get("sessions/s1/turns/").json()["data"]
        assert [turn["output_spike"] for turn in turns] == [None] * 5 + [spike["tokens"]]
        assert push(api, whole_turn(6, lines=USUAL))["output_spike"] is None

    def test_a_retry_gets_the_same_answer(self, api: Api) -> None:
        body = {"messages": whole_turn(0, lines=LARGE)}
        api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 20_000}})
        first, again = (api.post("sessions/s1/turns/", body, idempotency_key="k1").json() for _ in range(2))
        assert first["output_spike"]["mean"] == 0
        assert again == first

    @pytest.mark.slow
    def test_large_outputs_are_not_a_spike_if_they_are_usual(self, api: Api) -> None:
        api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 20_000}})
        found = [push(api, whole_turn(number, lines=LARGE))["output_spike"] for number in range(8)]
        assert found[3:] == [None] * 5

    def test_the_tool_is_unknown_if_its_call_was_pushed_before(self, api: Api) -> None:
        api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 20_000}})
        push(api, [request(), call("toolu_1", path="a.py")])
        assert push(api, [result("toolu_1", output(1, LARGE))])["output_spike"]["tool"] == ""

    def test_the_chart_marks_the_turn(self, api: Api, member_client: Client, project: Project) -> None:
        spike = pushed_with_spike(api)["output_spike"]
        session = AgentSession.objects.get()
        chart = member_client.get(address("session_chart", session)).json()
        assert chart["spikes"] == [{"turn": 5, "tokens": spike["tokens"]}]
        table = member_client.get(address("session_chart_table", session)).text
        assert f">{spike['tokens']:,}<" in table


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_webhooks_and_metrics_report_a_spike(api: Api, client: Client) -> None:
    counted = _counted(client)
    api.post("webhooks/", {"url": "https://hooks.example.com/ctx", "events": ["tool_output.spike"]})
    spike = pushed_with_spike(api)["output_spike"]
    [delivery] = WebhookDelivery.objects.all()
    body = json.loads(bytes(delivery.body))
    assert (body["event"], body["turn"], body["output_spike"]) == ("tool_output.spike", 5, spike)
    assert body["session"]["external_id"] == "s1"
    assert body["budget"] == 20_000
    assert _counted(client) == counted + 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_metrics_count_a_spike_without_webhooks(api: Api, client: Client) -> None:
    counted = _counted(client)
    assert pushed_with_spike(api)["output_spike"] is not None
    assert _counted(client) == counted + 1


def _counted(client: Client) -> float:
    lines = client.get("/metrics").text.splitlines()
    counts = [line for line in lines if line.startswith("contextapp_tool_output_spikes_total")]
    return float(counts[0].split()[1]) if counts else 0.0
