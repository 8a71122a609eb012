"""Pages show when a list is full. What has expired, and changes of what is in it, do not count."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Project
from sessions.models import AgentSession, Comment, CostBudget, SavedView, SharedLink
from sessions.services.sessions.comments import MOST_COMMENTS
from sessions.services.sessions.saved_views import MAX_VIEWS
from sessions.services.sessions.sharing import MOST_LINKS
from sessions.services.spending.cost_budgets import MOST_BUDGETS
from tests.markup import one_line
from tests.pages.transcripts import make_session
from tests.plugins.reused import reused

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@reused
def session(project: Project) -> AgentSession:
    Project.objects.filter(pk=project.pk).update(allows_sharing=True)
    return make_session(project)


def address(name: str, *more: object) -> str:
    return reverse(name, args=["alpha", *more])


def test_links(session: AgentSession, owner_client: Client) -> None:
    now = timezone.now()
    expiries = [now] + [now + timedelta(days=1)] * (MOST_LINKS - 1)
    SharedLink.objects.bulk_create(
        SharedLink(session=session, token_hash=b"%d" % number, expires_at=at)
        for number, at in enumerate(expiries)
    )
    share = address("session_share", session.pk)
    assert owner_client.post(share, {"days": 7}).status_code == 200
    refused = owner_client.post(share, {"days": 7})
    assert refused.status_code == 422
    assert f"A session has at most {MOST_LINKS} links." in refused.text
    assert SharedLink.objects.count() == MOST_LINKS


def test_comments(session: AgentSession, owner: User, owner_client: Client) -> None:
    Comment.objects.bulk_create(
        Comment(session=session, turn=0, text="x", author=owner) for _ in range(MOST_COMMENTS - 1)
    )
    for _ in range(2):
        answer = owner_client.post(
            address("session_turn_comments", session.pk, 1), {"text": "y"}, follow=True
        )
    assert f"A session has at most {MOST_COMMENTS:,} comments." in answer.text
    assert Comment.objects.count() == MOST_COMMENTS


def test_views(project: Project, owner: User, owner_client: Client) -> None:
    of_owner = {"project": project, "user": owner, "page": SavedView.Page.SESSIONS}
    SavedView.objects.bulk_create(
        SavedView(name=str(n), query="q=x", **of_owner) for n in range(MAX_VIEWS - 1)
    )
    for name in ("new", "newer", "0"):
        page = owner_client.post(address("saved_view_create"), {"name": name, "query": "q=y"}, follow=True)
        assert ("You have reached the limit" in page.text) == (name == "newer")
    assert SavedView.objects.filter(query="q=y").count() == 2


def test_budgets(project: Project, session: AgentSession, owner_client: Client) -> None:
    budget = {
        "project": project,
        "period": "month",
        "limit_microusd": 1,
        "scope": "agent",
        "time_zone": "UTC",
    }
    CostBudget.objects.bulk_create(
        CostBudget(scope_value=str(number), **budget) for number in range(MOST_BUDGETS - 1)
    )
    form = {"dollars": "5", "time_zone": "UTC", "emails": ""}
    for period, status in (("day", 302), ("week", 422), ("day", 302)):
        page = owner_client.post(address("settings_budgets"), {**form, "period": period})
        assert page.status_code == status
        assert (f"A project has at most {MOST_BUDGETS} budgets." in one_line(page)) == (status == 422)
    assert CostBudget.objects.count() == MOST_BUDGETS
