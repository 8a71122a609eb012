"""Trends, lab and settings in a real browser: mouse, keyboard, themes and phone width."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from accounts.models import Membership, Project, Role
from accounts.selectors import api_key_find
from sessions.services.spending.cost_budgets import budget_set
from sessions.services.spending.rollups import rollups_fill
from tests.browsing import PHONE, fits_in_width
from tests.markup import address
from tests.trends.turns import session_make, turn_make, turns_add

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PAGES = ("trends", "lab", "settings_keys", "settings_budgets")


@pytest.fixture
def used(project, owner):
    session = session_make(project, "fix", agent="fixer", title="Fixes it", created_by=owner)
    now = datetime.now(UTC)
    turns = [turn_make(session, n, now - timedelta(hours=9 * n), cost=700_000) for n in range(8)]
    # The previous period of 30 days is complete.
    turns += [turn_make(session, 8 + n, now - timedelta(days=days)) for n, days in enumerate((40, 65))]
    turns_add(session, turns)
    rollups_fill()
    budget_set(project=project, period="month", limit_microusd=5_000_000)
    return project


@pytest.fixture
def window(page_as: Callable[..., Page], owner, used) -> Page:
    return page_as(owner)


def expect_chart(page: Page) -> None:
    expect(page.locator(".chart canvas").first).to_be_visible()


def test_from_the_home_page_to_the_most_expensive_agent(window):
    window.goto("/")
    window.get_by_role("link", name="Trends").click()
    expect_chart(window)
    expect(window.get_by_role("heading", name="Savings from compaction")).to_be_visible()
    window.get_by_role("link", name="fixer", exact=True).click()
    window.wait_for_url(re.compile("agent=fixer"))
    expect(window.locator(".figures").get_by_role("link", name="Fixes it")).to_be_visible()


def test_a_filter_updates_the_page_and_the_url(window):
    window.goto(address("trends"))
    expect_chart(window)
    window.get_by_label("Group by").select_option("model")
    expect(window.get_by_role("heading", name="By model", exact=True)).to_be_visible()
    expect_chart(window)
    assert "group=model" in window.url
    window.go_back()
    expect(window.get_by_role("heading", name="By agent", exact=True)).to_be_visible()


def test_a_bar_narrows_the_period_and_the_legend_hides_a_group(window):
    window.goto(address("trends"))
    expect_chart(window)
    fixer = window.locator(".trend-legend").get_by_role("button", name="fixer")
    fixer.click()
    expect(fixer).to_have_attribute("aria-pressed", "false")
    today = window.get_by_label("To", exact=True).input_value()
    assert window.get_by_label("From", exact=True).input_value() < today
    plot = window.locator("[data-trend] .u-over")
    box = plot.bounding_box()
    plot.click(position={"x": box["width"] * 29.6 / 30, "y": box["height"] / 2})
    window.wait_for_url(re.compile(f"first={today}"))
    expect_chart(window)


def test_the_tip_of_a_bar_shows_the_total_except_of_tags(window, used):
    # A session with two tags counts toward both, so their sum is not what the day cost.
    session = session_make(used, "tagged", agent="tagged", tags=["ci", "nightly"])
    turns_add(session, [turn_make(session, 0, datetime.now(UTC), cost=142_300)])
    rollups_fill()
    for query, total in (("", ": $0.1423"), ("&group=tag", "")):
        window.goto(f"{address('trends')}?agent=tagged{query}")
        expect_chart(window)
        plot = window.locator("[data-trend] .u-over")
        box = plot.bounding_box()
        plot.hover(position={"x": box["width"] * 29.6 / 30, "y": box["height"] / 2})
        tip = window.locator(".trend-tip:visible")
        expect(tip.locator("b")).to_have_text(re.compile(rf"\d{{4}}{re.escape(total)}$"))
        expect(tip).to_contain_text("nightly" if query else "tagged")


def test_the_steps_between_the_labels_of_small_costs_are_equal(window, used):
    session = session_make(used, "cheap", agent="cheap")
    turns_add(session, [turn_make(session, 0, datetime.now(UTC), cost=142_300)])
    rollups_fill()
    window.add_init_script(
        """window.drawn = [];
        const draw = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
            drawn.push(text);
            draw.call(this, text, ...place);
        };"""
    )
    window.goto(f"{address('trends')}?agent=cheap")
    expect_chart(window)
    ticks = sorted({float(text[1:]) for text in window.evaluate("drawn") if text.startswith("$")})
    assert len(ticks) > 2
    assert len({round(after - before, 6) for before, after in pairwise(ticks)}) == 1, ticks


def test_the_figures_of_the_cost_chart_open_as_a_table(window):
    window.goto(address("trends"))
    expect_chart(window)
    window.locator("section", has=window.locator("[data-trend]")).get_by_text("Show data table").press(
        "Enter"
    )
    table = window.get_by_role("group", name="Cost per day").get_by_role("table")
    expect(table.get_by_role("columnheader", name="fixer")).to_be_visible()
    today = window.get_by_label("To", exact=True).input_value()
    assert f"{date.fromisoformat(today):%b} {date.fromisoformat(today).day}, " in table.inner_text()


def test_the_prompt_sizes_are_drawn(window):
    window.goto(address("trends"))
    chart = window.locator("[data-prompt-sizes]")
    expect(chart.locator("canvas")).to_be_visible()
    expect(chart).to_contain_text("p99")
    expect(chart.get_by_role("slider")).to_have_attribute("aria-label", re.compile("99th percentile"))


def test_the_causes_of_the_cost_change_lead_to_the_figures(window):
    window.goto(address("trends"))
    causes = window.get_by_role("table").filter(has_text="Change in cost")
    expect(causes.get_by_role("row").nth(1)).to_contain_text("Prices and models")
    expect(window.locator("[data-prompt-sizes] canvas")).to_be_visible()
    causes.get_by_role("link", name="Input per call").press("Enter")
    expect(window.get_by_role("heading", name="Prompt size per day")).to_be_in_viewport()
    causes.get_by_role("link", name="Prices and models").press("Enter")
    expect(window.get_by_role("heading", name="By model", exact=True)).to_be_in_viewport()


def test_the_time_zone_is_that_of_the_browser(browser, served_url, logged_in, owner, used):
    context = browser.new_context(base_url=served_url, timezone_id="Europe/Berlin")
    context.set_default_timeout(30_000)
    cookie = logged_in(owner).cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": served_url}])
    page = context.new_page()
    for name in ("trends", "trends_projects"):
        context.clear_cookies(name="zone")
        page.goto(address(name))
        expect(page.get_by_text("(Europe/Berlin)")).to_be_visible()
    context.close()


def test_the_lab_by_keyboard(window):
    window.goto(f"{address('lab')}?turns=10&window=60000")
    expect_chart(window)
    expect(window.get_by_text("All 10 turns fit")).to_be_visible()
    number = window.get_by_label("Tool output per turn", exact=True)
    slider = window.get_by_label("Tool output per turn, slider")
    slider.focus()
    window.keyboard.press("End")
    expect(window.get_by_text("the prompt overflows at turn")).to_be_visible()
    expect(number).to_have_value("12000")
    number.fill("110")
    expect(window.get_by_text("All 10 turns fit")).to_be_visible()
    expect(slider).to_have_value("100")
    window.wait_for_url(re.compile("result=110"))


def test_a_number_beyond_a_slider_becomes_the_nearest_allowed_one(window):
    window.goto(f"{address('lab')}?turns=10")
    number = window.get_by_label("Reserved for output", exact=True)
    for typed, allowed in (("200000", "64000"), ("3", "1000"), ("2000.6", "2001"), ("", "16000")):
        number.fill(typed)
        number.press("Enter")
        expect(number).to_have_value(allowed)
        window.wait_for_url(re.compile(f"output={allowed}"))


def test_a_key_is_created_and_revoked(window):
    window.goto(address("settings_keys"))
    window.get_by_label("Name").fill("CI")
    window.get_by_role("button", name="Create key").click()
    text = window.locator(".secret").inner_text().strip()
    assert api_key_find(text) is not None
    window.get_by_role("button", name="Revoke CI").click()
    window.get_by_role("alertdialog").get_by_role("button", name="Revoke").click()
    expect(window.get_by_role("status").first).to_contain_text("revoked")
    assert api_key_find(text) is None


def test_pages_fit_a_phone(window, used, owner, other_project):
    Membership.objects.create(project=other_project, user=owner, role=Role.OWNER)
    Project.objects.filter(pk=used.pk).update(name="P" * 100)
    session = session_make(used, "long", agent="a" * 100)
    turns_add(session, [turn_make(session, 0, datetime.now(UTC))])
    rollups_fill()
    budget_set(project=used, period="month", limit_microusd=1, scope="agent", scope_value="a" * 100)
    window.set_viewport_size(PHONE)
    for name in PAGES:
        window.goto(address(name))
        if name in {"trends", "lab"}:
            expect_chart(window)
        if name == "trends":
            expect(window.get_by_role("rowheader", name="Change in cost")).to_be_visible()
            row = window.get_by_role("group", name="By agent").locator("tbody tr").first.bounding_box()
            assert row is not None
            assert row["height"] < 80, "each group takes one line of the table"
        assert fits_in_width(window), name


def test_the_lab_fits_a_small_laptop(window):
    window.set_viewport_size({"width": 1024, "height": 700})
    window.goto(address("lab"))
    expect_chart(window)
    assert fits_in_width(window)


def test_the_labs_chart_stays_in_view_above_the_sliders_on_a_phone(window):
    window.set_viewport_size({"width": 390, "height": 844})
    window.goto(address("lab"))
    expect_chart(window)
    slider = window.get_by_label("Input price, slider")
    slider.scroll_into_view_if_needed()
    expect(window.locator(".chart canvas")).to_be_in_viewport(ratio=1)
    chart = window.locator(".chart canvas").bounding_box()
    assert chart["y"] + chart["height"] < slider.bounding_box()["y"]
    slider.focus()
    for _ in range(7):
        window.keyboard.press("Shift+Tab")
    focused = window.locator(".sliders :focus").bounding_box()
    assert window.locator("#lab-chart").bounding_box()["height"] < focused["y"], "the chart covers no focus"


def test_printed_pages_are_light_and_have_no_controls(window):
    window.emulate_media(color_scheme="dark")
    window.goto(address("trends"))
    expect_chart(window)
    swatch = "getComputedStyle(document.querySelector('.trend-legend .swatch')).backgroundColor"
    dark = window.evaluate(swatch)
    window.emulate_media(media="print")
    assert window.evaluate(swatch) != dark, "the legend has the colors of the redrawn chart"
    for hidden in (".top", ".trends-filters", ".presets"):
        expect(window.locator(hidden)).to_be_hidden()
    expect(window.get_by_role("heading", name="Savings from compaction")).to_be_visible()
    expect(window.get_by_role("columnheader", name="Net savings")).to_be_visible()
    red = "getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]"
    assert int(window.evaluate(red)) > 200
