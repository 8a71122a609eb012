"""Turns with very many messages, such as a history that a client sent at once, on the session's pages."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from accounts.models import Project
from sessions.models import AgentSession
from tests.pages.served import address
from tests.pages.transcripts import make_session, message, reading_turn, turn

pytestmark = pytest.mark.django_db

COUNT = 150
CALL = {"type": "tool_use", "id": "c", "name": "Grep", "input": {"pattern": "x"}}
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "no match"}


@pytest.fixture
def session(project: Project) -> AgentSession:
    """A turn with a long history, and one with its continuation."""
    contents = [f"Step {number}" for number in range(COUNT)]
    history = [
        message(("user", "assistant")[number % 2], content, f"m{number}")
        for number, content in enumerate(contents)
    ]
    return make_session(project, [turn(0, history), reading_turn(1)])


def positions(text: str) -> list[int]:
    return [int(found) for found in re.findall(r'id="message-(\d+)"', text)]


def test_a_part_of_a_long_turn_is_shown_and_links_lead_to_all_its_messages(
    member_client: Client, session: AgentSession
) -> None:
    url, found = address("session", session), []
    text = member_client.get(url).text
    while True:
        page = positions(text)
        assert len(page) < 50
        found += [at for at in page if at < COUNT]
        later = re.search(r'href="[^"]*(\?message=(\d+))[^"]*">More messages of this turn', text)
        if later is None:
            break
        text = member_client.get(url + later[1]).text
        assert int(later[2]) in positions(text)
    assert found == list(range(COUNT))
    earlier = re.search(r'\?message=(\d+)[^"]*">Earlier messages of this turn', text)
    assert earlier is not None
    assert int(earlier[1]) == positions(text)[0] - 1


def test_a_link_to_a_message_shows_it(member_client: Client, session: AgentSession) -> None:
    assert 77 in positions(member_client.get(address("session", session), {"message": 77}).text)


def test_the_page_of_a_long_turn_shows_a_part_of_its_messages(
    member_client: Client, session: AgentSession
) -> None:
    text = member_client.get(address("session_turn", session, 0)).text
    assert 0 < len(positions(text)) < 50
    assert "More messages of this turn" in text


def test_the_call_of_the_first_result_of_a_part_is_known(member_client: Client, project: Project) -> None:
    """Wherever a part begins, its first result shows the name of its tool."""
    contents: list[object] = ["Look for x."]
    for number in range(60):
        contents += [[{**CALL, "id": f"c{number}"}], [{**RESULT, "tool_use_id": f"c{number}"}]]
    history = [
        message(("user", "assistant")[number % 2], content, f"m{number}")
        for number, content in enumerate(contents)
    ]
    made = make_session(project, [turn(0, history)])
    text = member_client.get(address("session", made), {"message": 60}).text
    shown = positions(text)
    results = [at for at in shown if at and at % 2 == 0]
    assert shown[0] in results
    assert text.count("no match") == len(results)
    first = text[text.index(f'id="message-{shown[0]}"') : text.index(f'id="message-{shown[1]}"')]
    assert "Grep" in first
