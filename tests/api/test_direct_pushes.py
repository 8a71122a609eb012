"""Pushes on the event loop of the web server, which leaves whatever is unusual to the endpoint."""

from __future__ import annotations

import json
from threading import Event
from typing import Any

import pytest
from django.db import connection

from accounts.models import ApiKey
from sessions.api.direct import LARGEST
from sessions.models import AgentSession, Compaction, Message, Turn
from sessions.services.compactions import preparation
from sessions.services.compactions.preparation import preparations
from sessions.services.webhooks.subscriptions import webhook_create
from sessions.store.bodies import unpack
from tests.api.client import Api
from tests.api.direct import Server, limit_requests
from tests.api.talk import answer, call, prompt, push, request, result, whole_turn
from tests.background.world import eventually

# Real commits: the event loop has its own connections.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("session")]


def body(number: int, **fields: Any) -> dict[str, Any]:
    return {"messages": whole_turn(number), **fields}


def test_a_push_is_stored_like_one_through_the_endpoint(api: Api, server: Server) -> None:
    usage = {"input_tokens": 900, "output_tokens": 20, "cache_read_input_tokens": 100}
    fields = {"usage": usage, "model": "claude-sonnet-4-5", "latency": {"duration_ms": 1_200}}
    push(api, whole_turn(2), **fields)
    status, headers, stored = server.push(body(3, **fields))
    assert status == 201
    assert headers["Content-Length"] == str(len(json.dumps(stored, separators=(",", ":"))))
    response = api.post("sessions/s1/turns/", body(4, **fields))
    assert set(headers) == set(response.headers)
    assert stored.keys() == response.json().keys()
    assert (stored["turn"], stored["positions"]) == (3, {"first": 12, "last": 15})
    turns = [row for row in Turn.objects.order_by("index").values() if row["index"] >= 3]
    differing = {name for name, value in turns[0].items() if turns[1][name] != value}
    assert differing <= {
        *("at", "index", "first_position", "prompt_estimate", "prompt_served", "component_tokens"),
        *("calibration_factor", "calibration_overhead"),
    }


def test_the_second_push_of_a_session_takes_this_path(api: Api, server: Server) -> None:
    api.post("sessions/", {"id": "s2"})
    api.post("sessions/s2/turns/", body(0))  # detects the format
    status, _, stored = server.push(body(1), name="s2")
    assert (status, stored["turn"]) == (201, 1)


def test_the_bytes_of_messages_are_kept(server: Server) -> None:
    raw = b'{"role": "user",\n "content": "\\u00e9 \\/ 1e5", "n": 1e5, "big": 123456789012345678901234567890}'
    status, _, _ = server.push(b'{"messages": [ %b , {"role":"user","content":"x"}]}' % raw)
    assert status == 201
    assert [unpack(m.body) for m in Message.objects.order_by("position")][-2:] == [
        raw,
        b'{"role":"user","content":"x"}',
    ]


def test_concurrent_pushes_are_all_stored(api: Api, server: Server) -> None:
    for number in range(2, 12):
        assert server.push(body(number)) is not None
        push(api, [request()])
    assert Turn.objects.count() == 22
    assert AgentSession.objects.get().message_count == Message.objects.count()


def test_a_retry_gets_the_stored_response(api: Api, server: Server) -> None:
    _, _, first = server.push(body(2), HTTP_IDEMPOTENCY_KEY="once")
    assert server.push(body(2), HTTP_IDEMPOTENCY_KEY="once") is None
    replayed = api.call("POST", "sessions/s1/turns/", json.dumps(body(2)).encode(), idempotency_key="once")
    assert replayed.headers["Idempotent-Replayed"] == "true"
    assert replayed.json() == first
    assert Turn.objects.count() == 3


@pytest.mark.parametrize(
    ("data", "headers"),
    [
        (b"{", {}),
        ({"messages": []}, {}),
        ({"messages": [{"role": "user", "content": "x"}], "unknown": 1}, {}),
        ({"messages": [{"role": "user", "content": "x"}], "expected_turn": 0}, {}),
        ({"messages": [{"role": "user", "content": "x"}], "system": "New."}, {}),
        ({"messages": [{"role": "user", "content": "x" * LARGEST}]}, {}),
        (body(2), {"QUERY_STRING": "a=1"}),
        (body(2), {"REQUEST_METHOD": "GET"}),
        (body(2), {"CONTENT_TYPE": "text/plain"}),
        (body(2), {"HTTP_CONTENT_ENCODING": "gzip"}),
        (body(2), {"HTTP_AUTHORIZATION": "Bearer unknown"}),
        (body(2), {"name": "unknown"}),
        (body(2), {"name": "a%20b"}),
    ],
)
def test_unusual_requests_are_left_to_the_endpoint(
    server: Server, data: Any, headers: dict[str, str]
) -> None:
    assert server.push(data, **headers) is None
    assert Turn.objects.count() == 2


def test_a_push_that_compacts_is_left_to_the_endpoint(api: Api, server: Server) -> None:
    AgentSession.objects.update(budget_tokens=1_000)
    assert server.push(body(2)) is None  # the cached state is out of date
    [fired] = push(api, whole_turn(2))["fired"]
    assert fired["state"] == "done"
    turn = [call("a"), result("a", "line\n" * 2_000), answer()]
    push(api, [request()])
    assert server.push({"messages": turn}) is None
    assert Turn.objects.count() == 4


def test_a_revoked_key_stores_nothing(api_key: str, server: Server) -> None:
    ApiKey.objects.update(revoked_at="2026-01-01T00:00Z")
    assert server.push(body(2)) is None
    assert Turn.objects.count() == 2


def test_a_rate_limit_counts_each_push_once(
    api: Api, server: Server, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_requests(5, settings, monkeypatch)
    assert server.push(body(2)) is None  # nothing is reserved yet
    push(api, whole_turn(2))
    assert server.push({"messages": []}) is None
    accepted = sum(server.push(body(number)) is not None for number in range(3, 10))
    assert accepted == 4
    assert api.post("sessions/s1/turns/", body(10)).status_code == 429


def test_a_push_that_is_left_to_the_endpoint_is_counted_once(
    api: Api, server: Server, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_requests(4, settings, monkeypatch)
    api.post("sessions/", {"id": "s2"})  # whose format is not known before its first push
    prompt(api, session="s2")
    assert server.push(body(0), name="s2") is None
    push(api, whole_turn(0), session="s2")
    push(api, whole_turn(1), session="s2")
    assert api.post("sessions/s2/turns/", body(2)).status_code == 429


@pytest.mark.slow
def test_pushes_continue_after_the_server_closed_the_connection(server: Server) -> None:
    assert server.push(body(2)) is not None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND query LIKE 'WITH session AS%%'"
            " AND pid <> pg_backend_pid()"
        )
    found = [server.push(body(3)), server.push(body(4))]
    assert found[-1] is not None
    assert found[-1][0] == 201
    stored = Turn.objects.count() - 3
    assert stored == sum(each is not None and each[0] == 201 for each in found)


@pytest.mark.slow
def test_only_spikes_that_webhooks_wait_for_are_left_to_the_endpoint(api: Api, server: Server) -> None:
    large = whole_turn(5, lines=200)
    for name in ("s2", "s3"):
        api.post("sessions/", {"id": name, "format": "anthropic", "budget": {"input_tokens": 20_000}})
        for number in range(5):
            push(api, whole_turn(number, lines=20), session=name)
    _, _, stored = server.push({"messages": large}, name="s2")
    assert stored["output_spike"] is not None
    assert Turn.objects.get(index=5).output_spike == stored["output_spike"]["tokens"]
    project = AgentSession.objects.get(external_id="s3").project
    webhook_create(project=project, url="https://hooks.example.com/ctx", events=["tool_output.spike"])
    assert server.push({"messages": large}, name="s3") is None
    assert push(api, large, session="s3")["output_spike"] == stored["output_spike"]


@pytest.mark.slow
def test_a_push_applies_a_prepared_compaction(api: Api, server: Server) -> None:
    api.post("sessions/", {"id": "s2", "format": "anthropic", "budget": {"input_tokens": 4_000}})
    push(api, whole_turn(0, lines=12), session="s2")
    preparations.start()
    try:
        for number in range(1, 40):
            pushed = server.push({"messages": whole_turn(number, lines=12)}, name="s2")
            state = AgentSession.objects.get(external_id="s2")
            if pushed is None:  # the prompt grew too fast to prepare its compaction
                pushed = (201, {}, push(api, whole_turn(number, lines=12), session="s2"))
            elif pushed[2]["fired"]:
                break
            if state.plan_turn is not None:
                boundary = state.plan_turn
                eventually(lambda: preparations.ready(state.pk, boundary))  # noqa: B023
    finally:
        preparations.stop()
    [fired] = pushed[2]["fired"]
    row = Compaction.objects.get(session=state)
    assert (fired["trigger"], fired["state"], fired["compaction"]) == ("hard", "done", row.number)
    assert row.turn_index == row.first_turn == pushed[2]["turn"] == state.turn_count - 1
    assert row.edits.exists()
    assert pushed[2]["prompt"]["tokens"] == row.tokens_after < 0.6 * 4_000
    shown = prompt(api, session="s2")
    assert shown["tokens"] == row.tokens_after
    # The cached state is current: the next push takes the direct path too.
    assert server.push({"messages": whole_turn(50)}, name="s2") is not None


@pytest.mark.slow
@pytest.mark.parametrize("has_begun", [True, False])
def test_a_push_waits_for_a_compaction_that_is_being_prepared(
    has_begun: bool, api: Api, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare, finish = preparation.compaction_prepare, Event()

    def prepare_later(**arguments: Any) -> Any:
        assert finish.wait(30)
        return prepare(**arguments)

    monkeypatch.setattr(preparation, "compaction_prepare", prepare_later)
    api.post("sessions/", {"id": "s2", "format": "anthropic", "budget": {"input_tokens": 4_000}})
    push(api, whole_turn(0, lines=12), session="s2")
    preparations.start()
    if not has_begun:  # the thread is busy with another session
        preparations.request(AgentSession.objects.get(external_id="s1").pk, 0)
    try:
        for number in range(1, 40):
            is_prepared = AgentSession.objects.get(external_id="s2").plan_turn is not None
            meanwhile = finish.set if is_prepared else bool
            turn = {"messages": whole_turn(number, lines=12)}
            pushed = server.push(turn, name="s2", meanwhile=meanwhile)
            if pushed is None or pushed[2]["fired"]:
                break
    finally:
        finish.set()
        preparations.stop()
    assert pushed is not None
    assert pushed[2]["fired"][0]["state"] == "done"
    assert Compaction.objects.get().turn_index == pushed[2]["turn"]


def test_the_push_after_one_that_plans_its_compaction_takes_the_direct_path(api: Api, server: Server) -> None:
    api.post("sessions/", {"id": "s2", "format": "anthropic", "budget": {"input_tokens": 4_000}})
    push(api, whole_turn(0, lines=12), session="s2")
    number = 1
    while server.push({"messages": whole_turn(number, lines=12)}, name="s2") is not None:
        number += 1
    assert push(api, whole_turn(number, lines=12), session="s2")["fired"]
    assert server.push({"messages": whole_turn(number + 1, lines=12)}, name="s2") is not None
