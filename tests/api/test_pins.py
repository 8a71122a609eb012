"""Pinned messages, which no compaction may edit."""

from __future__ import annotations

from typing import Any

import pytest

from sessions.models import AgentSession
from sessions.selectors.pins import pinned_messages
from sessions.services.reconcile.branches import session_fork
from tests.api.client import Api, code
from tests.api.talk import push, request, whole_turn
from tests.plugins.reused import reused

FIRST_RESULT = 6  # of the second turn: a request, a call, its result, an answer


def compacted(api: Api) -> list[dict[str, Any]]:
    """Compact as far as possible and return the messages that the prompt still shows, by position."""
    data = api.post("sessions/s1/compact/", {"policy": {"preset": "balanced", "target": 0.1}}).json()
    assert data["state"] == "done"
    return api.get("sessions/s1/prompt/?manifest=1").json()["manifest"]


def verbatim(manifest: list[dict[str, Any]]) -> set[int]:
    spans = (entry["positions"] for entry in manifest if entry["rule"] == "verbatim")
    return {at for span in spans for at in range(span["first"], span["last"] + 1)}


@reused(autouse=True)
def turns(api: Api) -> None:
    api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 2_000}, "policy": {"preset": "off"}})
    for number in range(12):
        push(api, whole_turn(number))


def test_a_pinned_message_and_its_call_are_unchanged(api: Api) -> None:
    assert api.call("PUT", f"sessions/s1/messages/{FIRST_RESULT}/pin/").json() == {
        "position": FIRST_RESULT,
        "pinned": True,
    }
    stays = verbatim(compacted(api))
    assert {FIRST_RESULT - 1, FIRST_RESULT} <= stays
    assert FIRST_RESULT + 4 not in stays


def test_an_unpinned_message_is_compacted_again(api: Api) -> None:
    api.call("PUT", f"sessions/s1/messages/{FIRST_RESULT}/pin/")
    assert api.delete(f"sessions/s1/messages/{FIRST_RESULT}/pin/").json()["pinned"] is False
    assert FIRST_RESULT not in verbatim(compacted(api))


@pytest.mark.parametrize("position", [48, 99_999, 10**12])
def test_a_position_without_a_message_is_named(api: Api, position: int) -> None:
    response = api.call("PUT", f"sessions/s1/messages/{position}/pin/")
    assert (response.status_code, code(response)) == (404, "not_found")
    assert push(api, [request()])["turn"] == 12


def test_it_requires_the_push_scope(reader_api: Api) -> None:
    response = reader_api.call("PUT", "sessions/s1/messages/0/pin/")
    assert (response.status_code, code(response)) == (403, "missing_scope")


def test_a_fork_has_the_pins_of_the_messages_that_it_shares(api: Api) -> None:
    for position in (FIRST_RESULT, 40):
        api.call("PUT", f"sessions/s1/messages/{position}/pin/")
    parent = AgentSession.objects.get(external_id="s1", project__slug="alpha")
    fork = session_fork(parent=parent, at=20, context_start=0)
    assert [each.pin.position for each in pinned_messages(fork)] == [FIRST_RESULT]
