"""Comments on turns: permissions to write, edit and delete them, and where they appear."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import AuditEvent, Project
from sessions.models import AgentSession, Comment
from sessions.services.sessions.lifecycle import session_delete
from tests.api.client import Api
from tests.markup import one_line
from tests.pages.served import address
from tests.pages.transcripts import make_session, reading_turn
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}
SECRET = "sk-ant-api03-" + "Zq8x" * 23 + "AA"


@reused
def session(project: Project) -> AgentSession:
    return make_session(project, [reading_turn(n) for n in range(4)])


def write(client: Client, session: AgentSession, text: str, *, turn: int = 2) -> str:
    response = client.post(address("session_turn_comments", session, turn), {"text": text}, headers=HTMX)
    assert response.status_code == 200
    return one_line(response)


def exported(client: Client, session: AgentSession, format: str) -> str:
    response: Any = client.get(address("session_export", session, format))
    return b"".join(response).decode()


@pytest.mark.slow
def test_a_comment_appears_wherever_its_turn_does(
    member_client: Client, viewer_client: Client, api_key: str, session: AgentSession
) -> None:
    shown = write(member_client, session, f"<b>Why</b> again?\r\nKey: {SECRET}")
    assert "<html" not in shown
    assert "&lt;b&gt;Why&lt;/b&gt; again?<br>" in shown
    assert SECRET not in Comment.objects.get().text
    page = one_line(viewer_client.get(address("session", session)))
    assert "&lt;b&gt;Why&lt;/b&gt; again?<br>" in page
    assert "1 comment</summary>" in page
    assert "<textarea" not in page
    assert "<b>marc</b>" in one_line(viewer_client.get(address("session_turn", session, 2)))
    assert "1 comment</a>" in one_line(viewer_client.get(reverse("sessions", args=["alpha"])))
    [mark] = viewer_client.get(address("session_chart", session)).json()["comments"]
    assert (mark["turn"], mark["author"]) == (2, "marc")
    [found] = Api(api_key).get(f"sessions/{session.pk}/comments/").json()["data"]
    assert (found["turn"], found["author"], found["edited_at"]) == (2, "marc", None)
    last = json.loads(exported(viewer_client, session, "jsonl").splitlines()[-1])
    assert (last["turn"], last["author"], last["comment"]) == (2, "marc", found["text"])
    before, after = exported(viewer_client, session, "md").split("**Comment by marc on turn 2**")
    assert "## Turn 2" in before
    assert "## Turn 3" not in before
    assert "> <b>Why</b> again?\n> Key: " in after
    assert "&lt;b&gt;Why&lt;/b&gt; again?<br>" in exported(viewer_client, session, "html")
    session_delete(session=session)
    assert not Comment.objects.exists()


@pytest.mark.slow
def test_comments_are_listed_oldest_first_and_exported_by_turn(
    member_client: Client, api_key: str, session: AgentSession
) -> None:
    for text, turn in (("First", 2), ("Second", 0), ("Third", 2)):
        write(member_client, session, text, turn=turn)
    listed = f"sessions/{session.pk}/comments/?limit=2"
    first = Api(api_key).get(listed).json()
    second = Api(api_key).get(f"{listed}&cursor={first['next_cursor']}").json()
    pages = [[comment["text"] for comment in page["data"]] for page in (first, second)]
    assert pages == [["First", "Second"], ["Third"]]
    assert second["next_cursor"] is None
    lines = map(json.loads, exported(member_client, session, "jsonl").splitlines())
    assert [line["comment"] for line in lines if "comment" in line] == ["Second", "First", "Third"]


@pytest.mark.slow
def test_authors_edit_and_owners_delete(
    owner_client: Client, member_client: Client, session: AgentSession
) -> None:
    write(member_client, session, "First")
    comment = Comment.objects.get()
    edit, delete = (
        address(name, session, comment.pk) for name in ("session_comment", "session_comment_delete")
    )
    assert owner_client.post(edit, {"text": "Not mine"}).status_code == 403
    shown = one_line(member_client.post(edit, {"text": "Second"}, headers=HTMX))
    assert "Second" in shown
    assert ">edited<" in shown
    assert "Edit" not in one_line(owner_client.get(address("session", session))).partition("comments-2")[2]
    owner_client.post(delete)
    assert not Comment.objects.exists()
    event = AuditEvent.objects.get(action="comment.deleted")
    assert event.detail == {"author": "marc", "turn": 2}
    write(member_client, session, "Third")
    member_client.post(address("session_comment_delete", session, Comment.objects.get().pk))
    assert not Comment.objects.exists()
    assert AuditEvent.objects.filter(action="comment.deleted").count() == 1


def test_invalid_comments_are_explained(member_client: Client, session: AgentSession) -> None:
    assert "Enter a comment." in write(member_client, session, " \n ")
    too_long = write(member_client, session, "x" * 10_001)
    assert "A comment has at most 10,000 characters." in too_long
    assert "x" * 10_001 in too_long
    plain = member_client.post(address("session_turn_comments", session, 2), {"text": ""})
    assert plain.status_code == 422
    for turn in (99, 2**40):
        response = member_client.post(address("session_turn_comments", session, turn), {"text": "x"})
        assert response.status_code == 404
    assert not Comment.objects.exists()
