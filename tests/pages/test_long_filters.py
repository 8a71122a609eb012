"""The filters of the transcript in a session of several thousand messages."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from accounts.models import Project
from sessions.models import AgentSession
from sessions.services.tools.counting import session_tools_count
from tests.pages.served import address
from tests.pages.transcripts import make_session, message, reading_turn, turn
from tests.plugins.reused import reused

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

TURNS = 1_500


@reused
def session(project: Project) -> AgentSession:
    """Two searches at the beginning, then very many reads."""
    call = {"type": "tool_use", "id": "g", "name": "Grep", "input": {"pattern": "x"}}
    result = {"type": "tool_result", "tool_use_id": "g", "content": "no match"}
    searches = [
        turn(0, [message("user", "Find x.", "g0"), message("assistant", [call], "g1")]),
        turn(1, [message("user", [result], "g2"), message("assistant", [{**call, "id": "h"}], "g3")]),
        turn(2, [message("user", [{**result, "tool_use_id": "h"}], "g4")]),
    ]
    made = make_session(project, [*searches, *map(reading_turn, range(TURNS))])
    while session_tools_count(session_id=made.pk):
        pass
    return made


def found(client: Client, session: AgentSession, **query: object) -> list[int]:
    text = client.get(address("session", session), query).text
    return [int(position) for position in re.findall(r'id="message-(\d+)"', text)]


def test_matches_are_found_at_any_distance(member_client: Client, session: AgentSession) -> None:
    last = session.message_count - 1
    assert found(member_client, session, tool="Grep") == [2, 4]
    assert found(member_client, session, tool="Grep", after=1) == [2, 4]
    assert found(member_client, session, tool="Grep", before=4) == [2]
    assert found(member_client, session, tool="Unknown") == []
    assert found(member_client, session, role="user") == [0, 5]
    newest = found(member_client, session, tool="Read")
    assert len(newest) == 16
    assert newest[-1] == last - 1
    assert found(member_client, session, tool="Read", after=3)[0] == 7
