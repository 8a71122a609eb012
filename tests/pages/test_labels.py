"""Title and tags of a session can be edited, and survive another import."""

from __future__ import annotations

import pytest

from accounts.models import AuditEvent
from sessions.models import AgentSession
from tests.api.client import Api
from tests.markup import one_line
from tests.pages.served import address
from tests.pages.transcripts import make_session, reading_turn
from tests.redaction.secrets import TOKENS

pytestmark = pytest.mark.django_db


def test_title_and_tags_are_edited_and_kept_by_imports(member_client, project):
    session = make_session(project, [reading_turn(0)], title="/mode")
    new = {"title": " Pool  bug ", "tags": "red, ci,, red"}
    page = member_client.post(address("session_labels", session), new, follow=True)
    assert "Title, tags and notes saved." in page.text
    again = make_session(project, [reading_turn(0), reading_turn(1)], title="/mode", tags=["log"])
    assert (again.title, again.tags, again.turn_count) == ("Pool bug", ["red", "ci"], 2)
    assert AuditEvent.objects.filter(action="session.labeled").count() == 1


def test_the_user_stays_on_the_tab_with_the_form(member_client, project):
    session = make_session(project)
    tab = f"http://testserver{address('session_compactions', session)}"
    for name in ("session_labels", "session_star"):
        saved = member_client.post(address(name, session), {"title": "New"}, headers={"Referer": tab})
        assert saved.url == tab


def test_secrets_are_redacted(member_client, project):
    session = make_session(project)
    kind, secret = TOKENS[0]
    member_client.post(address("session_labels", session), {"title": f"uses {secret}", "tags": secret})
    stored = AgentSession.objects.get(pk=session.pk)
    assert secret not in f"{stored.title} {stored.tags}", kind


@pytest.mark.slow
def test_notes_are_kept_and_redacted(member_client, project):
    session = make_session(project)
    _, secret = TOKENS[0]
    new = {"title": "Pool bug", "notes": f"See <b>ticket</b> 12.\r\n{secret}"}
    page = member_client.post(address("session_labels", session), new, follow=True).text
    assert "See &lt;b&gt;ticket&lt;/b&gt; 12.<br>" in page
    assert secret not in page
    assert "notes" in AuditEvent.objects.get(action="session.labeled").detail["changed"]


def test_two_users_change_different_fields(member_client, project):
    session = make_session(project, title="Pool bug", tags=["red"])
    opened = {"title": "Pool bug", "tags": "red", "notes": ""}
    opened |= {f"was_{name}": value for name, value in opened.items()}
    target = address("session_labels", session)
    member_client.post(target, opened | {"notes": "Line one\r\nline two"})
    member_client.post(target, opened | {"title": "Pool is empty"})
    session.refresh_from_db()
    assert (session.title, session.tags) == ("Pool is empty", ["red"])
    assert session.notes == "Line one\nline two"
    changed = AuditEvent.objects.filter(action="session.labeled").order_by("pk")
    assert [event.detail["changed"] for event in changed] == [["notes"], ["title"]]
    page = one_line(member_client.get(address("session", session)))
    assert '<input type="hidden" name="was_title" value="Pool is empty">' in page


def test_two_users_change_the_same_field(member_client, project):
    session = make_session(project, title="Pool bug", tags=["red"])
    target = address("session_labels", session)
    opened = {"was_title": "Pool bug", "was_tags": "red", "was_notes": "", "tags": "red", "notes": ""}
    member_client.post(target, opened | {"title": "Pool is empty"})
    assert member_client.post(target, opened | {"title": "Pool is empty"}).status_code == 302
    late = member_client.post(target, opened | {"title": "Pool is full", "notes": "Mine"})
    assert late.status_code == 409
    session.refresh_from_db()
    assert (session.title, session.notes) == ("Pool is empty", "")
    page = one_line(late)
    assert "the title changed after you opened this form" in page
    # The form has the text of the user, and replaces the current values if it is saved again.
    assert 'name="title" value="Pool is full"' in page
    assert "> Mine</textarea>" in page
    again = opened | {"was_title": "Pool is empty", "title": "Pool is full", "notes": "Mine"}
    assert member_client.post(target, again).status_code == 302
    session.refresh_from_db()
    assert (session.title, session.notes) == ("Pool is full", "Mine")


@pytest.mark.slow
def test_a_star_belongs_to_one_user(member_client, viewer_client, project):
    session = make_session(project)
    other = make_session(project, name="other", title="Another session")
    viewer_client.post(address("session_star", session), {"starred": "1"})
    listed = f"/p/{project.slug}/sessions/"
    starred = viewer_client.get(listed, {"starred": "on"})
    assert [row.session for row in starred.context["page"].rows] == [session]
    assert 'aria-pressed="true"' in viewer_client.get(address("session", session)).text
    assert not member_client.get(listed, {"starred": "on"}).context["page"].rows
    assert len(member_client.get(listed).context["page"].rows) == 2
    member_client.post(address("session_star", session), {"starred": "1"})
    viewer_client.post(address("session_star", session), {"starred": "0"})
    assert len(member_client.get(listed, {"starred": "on"}).context["page"].rows) == 1
    assert not viewer_client.get(listed, {"starred": "on"}).context["page"].rows
    assert other.title == "Another session"


def test_over_the_api(api_key, project):
    make_session(project)
    changed = Api(api_key).patch("sessions/s-1/", {"title": "Pool bug", "tags": ["red"]}).json()
    assert (changed["title"], changed["tags"]) == ("Pool bug", ["red"])


def test_a_viewer_cannot_edit(viewer_client, project):
    session = make_session(project)
    assert "Edit title, tags and notes" not in viewer_client.get(address("session", session)).text
