"""What axe-core says of the pages, in both themes."""

from __future__ import annotations

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from tests.browsing import barriers
from tests.pages.served import address, compacted_session

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


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
        address("session_past_prompt_entry", compacted, 12, 1),
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
        assert barriers(page) == [], path


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessibility_without_a_session(page, project, at, theme):
    page.emulate_media(color_scheme=theme)
    at(reverse("sessions", args=[project.slug]))
    assert barriers(page) == []
    page.context.clear_cookies()
    at("/login/")
    assert barriers(page) == []


def test_an_address_that_is_not_there(at, page, complaints):
    at("/p/no-such/sessions/")
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()
    assert barriers(page) == []
    assert "404" in complaints.pop()  # the browser reports it
