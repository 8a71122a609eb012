"""What axe-core says of the pages, in both themes."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Page, expect

from tests.pages.served import address, compacted_session

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SERIOUS = {"serious", "critical"}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessibility(at, page, sample, project, other_project, theme):
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    whole_text = reverse("session_text", args=[project.slug, sample.pk, 0, 0])
    table = reverse("session_chart_table", args=[project.slug, sample.pk])
    compacted = compacted_session(project, name="compacted")
    own = [
        address("session_turn", compacted, 11),
        address("session_prompt", compacted),
        address("session_raw", compacted),
        address("session_compactions", compacted),
        address("session_compaction", compacted, 1),
        address("session_recap", compacted, 1),
        address("session_seen_entry", compacted, 12, 1),
    ]
    paths = [
        reverse("sessions", args=[project.slug]),
        address("session", sample),
        whole_text,
        table,
        *own,
    ]
    for path in [*paths, f"{paths[0]}?q=nothing", f"{address('session', sample)}?turn=20"]:
        at(path)
        page.wait_for_load_state("networkidle")
        assert findings(page) == [], path


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessibility_without_a_session(page, complaints, project, member, at, theme):
    page.emulate_media(color_scheme=theme)
    at(reverse("sessions", args=[project.slug]))
    assert findings(page) == []
    page.context.clear_cookies()
    at("/login/")
    assert findings(page) == []


def test_an_address_that_is_not_there(at, page, complaints):
    at("/p/no-such/sessions/")
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()
    assert findings(page) == []
    complaints.clear()  # the browser reports the 404 itself


def findings(page: Page) -> list[str]:
    """What axe-core finds serious or critical, a line each."""
    found = Axe().run(page).response["violations"]
    return [
        f"{rule['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for rule in found
        if rule["impact"] in SERIOUS
        for node in rule["nodes"]
    ]
