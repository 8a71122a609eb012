"""Replay pages in a real browser: charts, accessibility, themes and widths."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from accounts.models import Project
from compaction.policy import get_policy
from compaction.replay.setting import Limit
from replay.models import ReplayResult, ReplayRun
from replay.services import execution, runs
from sessions.models import AgentSession
from sessions.services.compactions.apply import session_compact
from tests.browsing import DESKTOP, PHONE, barriers, fits_in_width

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def run(project: Project, session: AgentSession) -> ReplayRun:
    """A finished run of a compacted session."""
    session_compact(session=session, trigger="user")
    policies = [get_policy(name) for name in ("off", "baseline", "balanced")]
    made = runs.run_create(
        project=project, sessions=[session], policies=policies, limits=[Limit(ratio=0.5)], title="half"
    )
    while made.state in ReplayRun.OPEN:
        execution.run_step(run_id=made.pk)
        made.refresh_from_db()
    return made


@pytest.fixture
def window(page_as: Callable[[User], Page], owner: User) -> Page:
    return page_as(owner)


def test_the_chart_links_to_turns(window: Page, run: ReplayRun) -> None:
    window.goto(f"/p/alpha/replay/{run.pk}/")
    expect(window.locator(".chart canvas")).to_be_visible()
    budget = ReplayResult.objects.values_list("budget_tokens", flat=True)[0]
    keys = ["off", "baseline", "balanced", f"Budget ({budget:,})"]
    expect(window.locator(".replay-legend li")).to_have_text(keys)
    over = window.locator(".chart .u-over")
    over.hover()
    expect(window.locator(".replay-tip")).to_contain_text("tokens")
    over.click()
    window.wait_for_url("**/sessions/*/?turn=*")


def test_pages_are_accessible_and_fit_the_screen(window: Page, run: ReplayRun, session: AgentSession) -> None:
    for address in (
        "/p/alpha/replay/",
        "/p/alpha/replay/rates/",
        f"/p/alpha/replay/{run.pk}/",
        f"/p/alpha/sessions/{session.pk}/replay/",
    ):
        window.set_viewport_size(PHONE)
        window.goto(address)
        if "rates" not in address and address != "/p/alpha/replay/":
            expect(window.locator(".chart canvas")).to_be_visible()
        assert fits_in_width(window), address
        window.set_viewport_size(DESKTOP)
        assert fits_in_width(window), address
        assert barriers(window) == [], address
