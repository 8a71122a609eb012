"""Latency of model calls: accepted with a push, returned with the turn, shown on its pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from sessions.models import AgentSession
from tests.api.client import Api, code
from tests.api.talk import TURNS, push, request, whole_turn
from tests.markup import one_line

pytestmark = pytest.mark.usefixtures("session")


def latency_of(api: Api, session: str = "s1") -> Any:
    return api.get(f"sessions/{session}/turns/?last=1").json()["data"][0]["latency"]


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (
            {"time_to_first_token_ms": 640, "duration_ms": 4_210},
            {"time_to_first_token_ms": 640, "duration_ms": 4_210},
        ),
        ({"duration_ms": 0}, {"time_to_first_token_ms": None, "duration_ms": 0}),
        ({}, None),
        (None, None),
    ],
)
def test_it_is_stored_with_the_turn(api: Api, sent: Any, stored: Any) -> None:
    push(api, whole_turn(0), latency=sent)
    assert latency_of(api) == stored


def test_it_is_optional(api: Api) -> None:
    push(api, whole_turn(0))
    assert latency_of(api) is None


def test_a_whole_history_reports_it_too(api: Api) -> None:
    response = api.post(
        "sessions/s1/reconcile/", {"messages": [request()], "latency": {"time_to_first_token_ms": 5}}
    )
    assert response.status_code == 200, response.content
    assert latency_of(api)["time_to_first_token_ms"] == 5


@pytest.mark.parametrize(
    ("latency", "expected", "param"),
    [
        (4_210, "invalid_field", "latency"),
        ({"duration_ms": -1}, "invalid_field", "latency.duration_ms"),
        ({"duration_ms": True}, "invalid_field", "latency.duration_ms"),
        ({"duration_ms": 1.5}, "invalid_field", "latency.duration_ms"),
        ({"duration_ms": 10**9}, "invalid_field", "latency.duration_ms"),
        (
            {"time_to_first_token_ms": 2, "duration_ms": 1},
            "invalid_field",
            "latency.time_to_first_token_ms",
        ),
        ({"total_ms": 1}, "unknown_field", "latency.total_ms"),
    ],
)
def test_an_invalid_latency_is_rejected(api: Api, latency: Any, expected: str, param: str) -> None:
    response = api.post(TURNS, {"messages": whole_turn(0), "latency": latency})
    assert response.status_code == 400
    assert (code(response), response.json()["error"]["param"]) == (expected, param)
    assert api.get("sessions/s1/").json()["turns"] == 0


@pytest.mark.slow
def test_the_pages_show_it(api: Api, viewer_client: Client) -> None:
    push(api, whole_turn(0), latency={"time_to_first_token_ms": 640, "duration_ms": 4_210})
    push(api, whole_turn(1), latency={"time_to_first_token_ms": 75_000})
    push(api, whole_turn(2))
    address = f"/p/alpha/sessions/{AgentSession.objects.get().pk}/"
    page = one_line(viewer_client.get(address))
    assert page.count("<span>latency</span>") == 2
    assert "4.2 s <small>(first token 640 ms)</small>" in page
    assert "first token 1 min 15 s" in page
    assert "4.2 s" in one_line(viewer_client.get(f"{address}turns/0/"))
    assert "Latency" not in viewer_client.get(f"{address}turns/2/").text
