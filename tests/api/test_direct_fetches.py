"""Fetches on the event loop of the web server, which leaves whatever is unusual to the endpoint."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import ApiKey
from sessions.models import AgentSession, Message
from sessions.selectors.prompts.cache import prompt_cache
from sessions.store import bodies
from tests.api.client import Api
from tests.api.direct import Server, limit_requests
from tests.api.talk import answer, call, push, request, result, whole_turn

# Real commits: the event loop has its own connections.
pytestmark = pytest.mark.django_db(transaction=True)

PROMPT = "sessions/s1/prompt/"


def read(api: Api) -> Any:
    """Fetch the prompt like a process that has fetched nothing, without caching it."""
    cached = dict(prompt_cache._prompts)
    prompt_cache.clear()
    found = api.get(PROMPT)
    prompt_cache._prompts.update(cached)
    return found


@pytest.fixture
def fetched(api: Api, server: Server) -> Server:
    """The event loop of a process that has fetched the prompt."""
    prompt_cache.clear()
    api.get(PROMPT)
    return server


def test_a_prompt_is_the_same_as_from_the_endpoint(api: Api, fetched: Server) -> None:
    for number in range(2, 6):
        push(api, whole_turn(number))
        if number % 2:
            push(api, [request("And then?")])
        status, headers, prompt = fetched.fetch()
        response = read(api)
        assert (status, prompt) == (200, response.json())
        assert headers == dict(response.headers)
        assert fetched.fetch() == (status, headers, prompt)


def test_an_unchanged_prompt_is_not_sent_again(api: Api, fetched: Server) -> None:
    _, headers, _ = fetched.fetch()
    response = api.get(PROMPT, if_none_match=headers["ETag"])
    assert response.status_code == 304
    found = fetched.fetch(HTTP_IF_NONE_MATCH=headers["ETag"])
    assert found[0] == 304
    assert found[1]["ETag"] == response.headers["ETag"]
    assert found[2] is None
    push(api, [request()])
    assert fetched.fetch(HTTP_IF_NONE_MATCH=headers["ETag"])[0] == 200


def test_the_served_prompt_is_recorded(api: Api, fetched: Server) -> None:
    push(api, whole_turn(2))
    _, _, served = fetched.fetch()
    assert api.post("sessions/s1/compact/", {"policy": {"target": 0.01}}).json()["state"] == "done"
    push(api, [request()])
    assert api.get(f"{PROMPT}?at_turn=2").json() == served


@pytest.mark.slow
def test_a_compacted_prompt_is_read_by_the_endpoint_first(api: Api, fetched: Server) -> None:
    push(api, whole_turn(2))
    assert api.post("sessions/s1/compact/", {"policy": {"target": 0.01}}).json()["state"] == "done"
    push(api, [request()])
    assert fetched.fetch() is None
    compacted = api.get(PROMPT).json()
    assert fetched.fetch()[2] == compacted
    push(api, whole_turn(3))
    assert fetched.fetch()[2] == read(api).json()
    assert api.post("sessions/s1/compactions/1/revert/").status_code == 200
    assert fetched.fetch() is None


def test_the_system_prompt_and_the_tools_are_current(api: Api, fetched: Server) -> None:
    for number, system in enumerate(("Be brief.", "Be precise."), start=2):
        push(api, whole_turn(number), system=system, tools=[])
        assert fetched.fetch() is None
        api.get(PROMPT)
        push(api, [request()])
        assert fetched.fetch()[2]["system"] == api.get(PROMPT).json()["system"] == system


@pytest.mark.parametrize(
    "headers",
    [
        {"QUERY_STRING": "manifest=1"},
        {"REQUEST_METHOD": "HEAD"},
        {"HTTP_AUTHORIZATION": "Bearer unknown"},
        {"name": "unknown"},
    ],
)
def test_unusual_requests_are_left_to_the_endpoint(fetched: Server, headers: dict[str, str]) -> None:
    assert fetched.fetch() is not None
    assert fetched.fetch(**headers) is None


def test_a_prompt_that_must_be_rendered_is_left_to_the_endpoint(api: Api, fetched: Server) -> None:
    push(api, [result("unknown", "Of a call that was not pushed.")])
    assert fetched.fetch() is None
    assert "Of a call that was not pushed." in str(api.get(PROMPT).json()["messages"][-1])


def test_a_prompt_with_open_calls_is_the_same_as_from_the_endpoint(api: Api, fetched: Server) -> None:
    push(api, [answer("Let me look."), request("Do."), call("open")])
    status, _, prompt = fetched.fetch()
    assert (status, prompt) == (200, read(api).json())
    assert prompt["open_calls"] == ["open"]


def test_a_prompt_that_does_not_fit_is_left_to_the_endpoint(api: Api, fetched: Server) -> None:
    AgentSession.objects.update(budget_tokens=10)
    assert fetched.fetch() is None
    assert api.get(PROMPT).json()["reason"]


def test_a_prompt_that_the_provider_compacts_is_left_to_the_endpoint(api: Api, fetched: Server) -> None:
    AgentSession.objects.update(policy={"engine": "provider"})
    assert fetched.fetch() is None


def test_a_revoked_key_and_a_deleted_session_get_nothing(api: Api, fetched: Server) -> None:
    ApiKey.objects.update(revoked_at="2026-01-01T00:00Z")
    assert fetched.fetch() is None
    ApiKey.objects.update(revoked_at=None)
    assert fetched.fetch() is not None
    AgentSession.objects.all().delete()
    assert fetched.fetch() is None


def test_an_earlier_state_of_the_database_that_was_restored_is_read_again(api: Api, fetched: Server) -> None:
    last = Message.objects.order_by("position").last()
    assert last is not None
    last.body = bodies.pack(bodies.json_bytes(answer("Something else")))
    last.save(update_fields=["body"])
    AgentSession.objects.update(title="Restored")  # another version of its row
    assert fetched.fetch() is None


def test_a_rate_limit_counts_each_fetch_once(
    api: Api, fetched: Server, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_requests(5, settings, monkeypatch)
    assert fetched.fetch() is None  # nothing is reserved yet
    assert api.get(PROMPT).status_code == 200
    assert sum(fetched.fetch() is not None for _ in range(6)) == 4
    assert api.get(PROMPT).status_code == 429
