"""Export of a session as JSON Lines and Markdown."""

from __future__ import annotations

import json

import pytest

from sessions.models import AgentSession
from tests.pages.served import address
from tests.pages.transcripts import make_session, message, reading_turn, turn
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db


@reused
def session(project) -> AgentSession:
    fence = [message("user", "Use this:\n```\ncode\n```", "u9"), message("assistant", "Done.", "a9")]
    turns = [*(reading_turn(n, "a ``` fence" if n else "") for n in range(9)), turn(9, fence)]
    made = make_session(project, turns)
    made.metadata = {"git_branch": "fix-pool"}
    made.save()
    return made


def exported(client, session, format):
    response = client.get(address("session_export", session, format))
    assert response.status_code == 200
    assert f"session-{session.pk}.{format}" in response["Content-Disposition"]
    return response.getvalue().decode()


def test_json_lines_have_every_message_as_pushed(viewer_client, session):
    exported_lines = exported(viewer_client, session, "jsonl").splitlines()
    lines = [line for line in map(json.loads, exported_lines) if line["type"] == "message"]
    assert [line["position"] for line in lines] == list(range(session.message_count))
    assert lines[0]["message"] == {"role": "user", "content": "Please read the files."}
    assert {line["turn"] for line in lines} == set(range(10))
    assert all(line["at"] for line in lines)


def test_markdown_is_a_readable_transcript(viewer_client, session):
    text = exported(viewer_client, session, "md")
    assert text.startswith("# Reads some files\n")
    assert "- Branch: fix-pool\n" in text
    assert text.count("\n## Turn ") == 10
    assert "Call of `Read`:\n\n```json\n" in text
    assert "````\na ``` fence\n````" in text


def test_there_is_no_other_format_and_no_access_for_strangers(viewer_client, stranger_client, session):
    assert viewer_client.get(address("session_export", session, "exe")).status_code == 404
    assert stranger_client.get(address("session_export", session, "md")).status_code == 404


@pytest.mark.slow
def test_the_page_links_to_both(viewer_client, session):
    page = viewer_client.get(address("session", session)).text
    assert all(address("session_export", session, name) in page for name in ("md", "jsonl"))
