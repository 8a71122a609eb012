"""Links that show a session without a login, and its export as one HTML page."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEvent, Project
from sessions.models import AgentSession, SharedLink
from tests.markup import one_line
from tests.pages.transcripts import make_session, message, turn


@pytest.fixture
def session(project: Project) -> AgentSession:
    texts = ["Fix the <b>pool</b>.", "It is fixed."]
    turns = [turn(n, [message("user", text, f"u{n}")]) for n, text in enumerate(texts)]
    return make_session(project, turns, title="Pool & paint")


@pytest.fixture
def allowed(project: Project, session: AgentSession) -> AgentSession:
    Project.objects.filter(pk=project.pk).update(allows_sharing=True)
    return session


def address(session: AgentSession, name: str = "session_share", *more: object) -> str:
    return reverse(name, args=[session.project.slug, session.pk, *more])


def share(client: Client, session: AgentSession) -> str:
    page = client.post(address(session), {"days": 7})
    assert page.status_code == 200
    found = re.search(r"http://testserver(/shared/[\w-]+/)", page.text)
    assert found
    return found[1]


def read(link: str) -> str:
    response = Client().get(link)
    assert response.status_code == 200
    assert response["X-Robots-Tag"] == "noindex, nofollow"
    return b"".join(response).decode()


def test_a_link_shows_the_transcript_without_a_login(member_client: Client, allowed: AgentSession) -> None:
    text = read(share(member_client, allowed))
    assert "<h1>Pool &amp; paint</h1>" in text
    assert "Fix the &lt;b&gt;pool&lt;/b&gt;." in text
    assert text.count("<article") == 2
    assert "<script" not in text
    assert "/p/alpha/" not in text
    assert AuditEvent.objects.filter(action="session.shared", user__username="marc").exists()


@pytest.mark.slow
def test_a_link_shows_comments_only_if_chosen(member_client: Client, allowed: AgentSession) -> None:
    member_client.post(address(allowed, "session_turn_comments", 1), {"text": "Checked by me"})
    assert "Checked by me" not in read(share(member_client, allowed))
    page = member_client.post(address(allowed), {"days": 7, "comments": "on"}).text
    found = re.search(r"http://testserver(/shared/[\w-]+/)", page)
    assert found
    assert "Checked by me" in read(found[1])


@pytest.mark.slow
def test_links_expire_and_are_revoked(member_client: Client, allowed: AgentSession) -> None:
    link, other = share(member_client, allowed), share(member_client, allowed)
    page = member_client.get(address(allowed)).text
    assert "won't be able to see it again" not in page
    assert "Revoke this link?" in page
    newest = SharedLink.objects.order_by("-pk")[0]
    member_client.post(address(allowed, "session_unshare", newest.pk))
    assert Client().get(other).status_code == 404
    assert AuditEvent.objects.filter(action="session.unshared", user__username="marc").exists()
    assert read(link)
    SharedLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert Client().get(link).status_code == 404
    assert "No active links." in member_client.get(address(allowed)).text


@pytest.mark.slow
def test_a_project_can_withdraw_all_links(
    owner_client: Client, member_client: Client, allowed: AgentSession
) -> None:
    link = share(member_client, allowed)
    owner_client.post(reverse("settings", args=["alpha"]), {"name": "Alpha", "summarizer_model": ""})
    assert Client().get(link).status_code == 404
    assert member_client.post(address(allowed), {"days": 7}).status_code == 422
    assert "Sharing is disabled in this project." in one_line(member_client.get(address(allowed)))


def test_sharing_is_off_by_default(member_client: Client, session: AgentSession) -> None:
    assert member_client.post(address(session), {"days": 7}).status_code == 422
    assert not SharedLink.objects.exists()


def test_a_guessed_token_is_not_found(allowed: AgentSession) -> None:
    for token in ("x", "0" * 43, "%00", "a" * 3_000):
        response = Client().get(f"/shared/{token}/")
        assert (response.status_code, response["Cache-Control"]) == (404, "private, no-store")
        assert "It has expired or was revoked." in response.text


def test_the_html_export_contains_its_styles(viewer_client: Client, session: AgentSession) -> None:
    response = viewer_client.get(address(session, "session_export", "html"))
    text = b"".join(response).decode()
    assert response["Content-Type"] == "text/html; charset=utf-8"
    assert "<style>" in text
    assert "--ground:" in text
    assert "<link" not in text
    assert "It is fixed." in text
