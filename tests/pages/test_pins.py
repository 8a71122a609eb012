"""Pinned messages on the pages of a session: who pinned them, and the button to pin and unpin."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import Project
from sessions.models import AgentSession, Message
from sessions.store.flags import MessageFlag
from tests.api.client import Api
from tests.markup import one_line
from tests.pages.served import address
from tests.pages.transcripts import make_session, reading_turn
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


@reused
def session(project: Project) -> AgentSession:
    return make_session(project, [reading_turn(n) for n in range(6)])


def pin(client: Client, session: AgentSession, position: int, *, pinned: bool = True) -> str:
    fields = {"pinned": str(int(pinned))}
    response = client.post(address("session_pin", session, position), fields, headers=HTMX)
    assert response.status_code == 200
    return one_line(response)


@pytest.mark.slow
def test_a_member_pins_and_unpins(member_client: Client, session: AgentSession) -> None:
    shown = pin(member_client, session, 3)
    assert "Pinned by marc" in shown
    assert "Unpin" in shown
    assert "<html" not in shown
    assert Message.objects.get(session=session, position=3).flags & MessageFlag.PINNED
    page = one_line(member_client.get(address("session", session)))
    assert page.count("Pinned by marc") == 1
    assert "Pinned by" not in pin(member_client, session, 3, pinned=False)
    assert not Message.objects.get(session=session, position=3).flags & MessageFlag.PINNED


def test_the_compactions_tab_lists_pinned_messages(
    member_client: Client, viewer_client: Client, session: AgentSession
) -> None:
    assert "Pinned messages" not in viewer_client.get(address("session_compactions", session)).text
    pin(member_client, session, 3)
    page = one_line(viewer_client.get(address("session_compactions", session)))
    assert "Message 3</a> assistant, Read call, turn 1" in page
    assert "Pinned by marc" in page


def test_a_pin_set_over_the_api_names_the_key(
    api_key: str, viewer_client: Client, session: AgentSession
) -> None:
    Api(api_key).call("PUT", f"sessions/{session.pk}/messages/2/pin/")
    assert "Pinned with the API key “tests”" in viewer_client.get(address("session", session)).text


def test_a_message_that_is_pinned_again_keeps_its_first_pin(
    member_client: Client, owner_client: Client, session: AgentSession
) -> None:
    pin(owner_client, session, 3)
    assert "Pinned by olga" in pin(member_client, session, 3)


@pytest.mark.slow
def test_a_viewer_sees_the_pin_but_no_button(
    member_client: Client, viewer_client: Client, session: AgentSession
) -> None:
    pin(member_client, session, 3)
    page = viewer_client.get(address("session", session)).text
    assert "Pinned by marc" in page
    assert "Unpin" not in page


@pytest.mark.slow
def test_what_the_model_saw_marks_pinned_messages(member_client: Client, session: AgentSession) -> None:
    turn = address("session_turn", session, 4)
    assert ">pinned<" not in member_client.get(turn).text
    pin(member_client, session, 3)
    assert member_client.get(turn).text.count(">pinned<") == 1


def test_without_htmx_it_returns_to_the_message(member_client: Client, session: AgentSession) -> None:
    response = member_client.post(address("session_pin", session, 3), {"pinned": "1"})
    assert response.url == address("session", session) + "?message=3#message-3"  # type: ignore[attr-defined]


@pytest.mark.parametrize("position", [99, 2**40])
def test_a_missing_message_is_not_found(member_client: Client, session: AgentSession, position: int) -> None:
    response = member_client.post(address("session_pin", session, position), {"pinned": "1"})
    assert response.status_code == 404
