"""Actions on selected sessions of the list, and its hidden columns."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, expect

from accounts.models import Project
from sessions.models import AgentSession
from tests.pages.transcripts import make_session


@pytest.fixture
def sessions(project: Project) -> list[AgentSession]:
    return [make_session(project, name=name, tags=["old"]) for name in ("one", "two", "three")]


def act(client: Client, project: Project, chosen: list[AgentSession], **data: str) -> str:
    response = client.post(
        reverse("sessions_bulk", args=[project.slug]),
        {"session": [str(session.pk) for session in chosen], **data},
        follow=True,
    )
    assert response.status_code == 200
    return response.text if not response.streaming else b"".join(response).decode()


def tags(project: Project) -> dict[str, list[str]]:
    return dict(project.agent_sessions.values_list("external_id", "tags"))


@pytest.mark.slow
def test_tags_are_added_and_removed(
    member_client: Client, project: Project, sessions: list[AgentSession]
) -> None:
    assert "Tagged 2 sessions." in act(member_client, project, sessions[:2], action="tag", tag="nightly")
    assert tags(project) == {"one": ["old", "nightly"], "two": ["old", "nightly"], "three": ["old"]}
    act(member_client, project, sessions[1:], action="untag", tag="old")
    assert tags(project) == {"one": ["old", "nightly"], "two": ["nightly"], "three": []}
    assert "Enter a tag." in act(member_client, project, sessions, action="tag", tag=" ")
    assert "Select at least one session." in act(member_client, project, [], action="tag", tag="x")


def test_selected_sessions_are_exported(
    member_client: Client, project: Project, sessions: list[AgentSession]
) -> None:
    lines = act(member_client, project, sessions[:2], action="export").splitlines()
    assert {line.split(",")[1] for line in lines[1:]} == {"one", "two"}


@pytest.mark.slow
def test_sessions_are_deleted_after_a_confirmation(
    member_client: Client, project: Project, sessions: list[AgentSession]
) -> None:
    child = make_session(project, name="child", parent="one")
    page = act(member_client, project, sessions[:2], action="delete")
    assert "Delete 2 sessions?" in page
    assert "Also delete 1 sub-agent session" in page
    assert project.agent_sessions.count() == 4
    address = reverse("sessions_delete", args=[project.slug])
    chosen = {"session": [str(session.pk) for session in sessions[:2]]}
    member_client.post(address, chosen)
    assert set(tags(project)) == {"three", child.external_id}
    assert member_client.get(address, chosen, follow=True).text.count("no longer exist") == 1


def test_viewers_select_no_sessions(
    viewer_client: Client, project: Project, sessions: list[AgentSession]
) -> None:
    assert 'name="session"' not in viewer_client.get(reverse("sessions", args=[project.slug])).text


def test_sessions_of_another_project_are_not_selected(
    stranger_client: Client, other_project: Project, sessions: list[AgentSession]
) -> None:
    chosen = {"session": [str(sessions[0].pk)]}
    stranger_client.post(reverse("sessions_delete", args=[other_project.slug]), chosen)
    assert AgentSession.objects.filter(pk=sessions[0].pk).exists()


def test_rows_are_selected_exported_and_deleted_and_columns_hidden(
    page_as: Callable[[User], Page], member: User, project: Project, sessions: list[AgentSession]
) -> None:
    page = page_as(member)
    page.goto(reverse("sessions", args=[project.slug]))
    delete = page.get_by_role("button", name="Delete…")
    expect(delete).to_be_hidden()
    page.get_by_label("Select all sessions on this page").check()
    expect(page.get_by_text("3 selected")).to_be_visible()
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("Peak", exact=True).uncheck()
    expect(page.get_by_role("columnheader", name="Peak")).to_be_hidden()
    page.reload()
    expect(page.get_by_role("columnheader", name="Health")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Peak")).to_be_hidden()
    page.get_by_label("Select Reads some files").last.check()
    for _ in range(2):
        with page.expect_download():
            page.get_by_role("button", name="Export CSV").click()
    delete.click()
    page.get_by_role("button", name="Delete 1 session").click()
    expect(page.get_by_text("Deleted 1 session.")).to_be_visible()
    assert len(tags(project)) == 2
