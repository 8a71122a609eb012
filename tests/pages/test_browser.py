"""The main workflows in a real browser."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import Page, expect

from accounts.models import Membership, Project, Role
from sessions.models import AgentSession, UsageRollup
from sessions.selectors.transcripts.pages import SHOWN
from sessions.services.samples.jobs import sample_run
from sessions.services.search.indexing import search_index_run
from sessions.services.sessions.pins import message_pin
from sessions.services.sessions.profiles import profile_write
from sessions.store.bodies import json_bytes
from tests.browsing import DESKTOP, PHONE, fits_in_width
from tests.pages.served import address as page_address
from tests.pages.served import compacted_session
from tests.pages.transcripts import active_session, make_session, message, reading_turn, turn

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


#: Whether no open menu is cut off at the left or right.
INSIDE = """() => [...document.querySelectorAll("details.menu[open] > :not(summary)")].every((panel) => {
  const { left, right } = panel.getBoundingClientRect();
  return left >= 0 && right <= innerWidth;
})"""

#: What is cut off at the right edge of these elements.
CUT_OFF = """elements => elements.flatMap((element) => {
  const { right } = element.getBoundingClientRect();
  const inside = [...element.querySelectorAll(":not(.scroll *, .unseen)")];
  return inside.filter((each) => each.getBoundingClientRect().right > right + 1).map(each => each.outerHTML);
})"""


def address(session: Any) -> str:
    return reverse("session", args=[session.project.slug, session.pk])


def chart_drawn(page: Page) -> Any:
    expect(page.locator(".chart canvas")).to_be_visible()
    return page.locator(".chart .u-over")


def tooltip_at(page: Page, share: float) -> str:
    box = chart_drawn(page).bounding_box()
    page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
    expect(page.locator(".chart-tip")).to_be_visible()
    return page.locator(".chart-tip").inner_text()


def log_in(page: Page, name: str, password: str = "correct horse battery") -> None:
    page.goto("/login/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def test_from_login_to_the_chart_of_a_sample_session(page, member, project):
    log_in(page, member.username)
    page.get_by_role("button", name="Load sample data").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Loading sample data")
    sample_run(project_id=project.pk)
    expect(page.locator(".notice.success")).to_contain_text("The sample data is ready")
    page.get_by_role("link", name="Fix tide predictions at secondary ports", exact=True).click()
    chart_drawn(page)
    page.get_by_role("link", name="Sessions").first.click()
    page.get_by_role("button", name="Remove sample data").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Remove sample data").click()
    expect(page.locator(".notice.success")).to_contain_text("Sample data removed")
    expect(page.locator("[data-row]")).to_have_count(0)


def test_wrong_password(page, member):
    log_in(page, member.username, "wrong")
    expect(page.get_by_role("alert")).to_contain_text("Wrong username or password")
    expect(page.get_by_label("Username")).to_have_value(member.username)
    expect(page.get_by_label("Password")).to_be_focused()


def test_log_out(at, page):
    at("/")
    page.locator(".menu-end summary").click()
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login/")


def test_the_chart_of_a_session(at, page, sample, subtests):
    """One load of a page serves for all that its chart shows, because it takes longer than the checks."""
    at(address(sample))
    with subtests.test("tooltips show exact values"):
        last = sample.turns.order_by("index").last()
        text = tooltip_at(page, 0.999)
        assert f"Turn {last.index}" in text
        assert f"{last.prompt_reported or last.prompt_estimate:,} tokens" in text
    with subtests.test("the tooltip of a compaction shows its trigger"):
        compacted = sample.turns.exclude(client_compaction=None).first()
        text = tooltip_at(page, compacted.index / (sample.turn_count - 1))
        assert compacted.client_compaction["trigger"] in text
        assert f"{compacted.client_compaction['tokens_before']:,} tokens" in text
    with subtests.test("the scale switches to log"):
        before = chart_image(page)
        page.get_by_role("button", name="Log", exact=True).click()
        expect(page.get_by_role("button", name="Log", exact=True)).to_have_attribute("aria-pressed", "true")
        assert before != chart_image(page)
    with subtests.test("the stack names the components"):
        page.get_by_role("button", name="By component").click()
        expect(page.get_by_role("button", name="Linear")).to_be_hidden()
        text = tooltip_at(page, 0.999)
        assert "tool outputs" in text
        assert "assistant" in text
        expect(page.locator(".chart-legend")).to_contain_text("Total: ")
    with subtests.test("it is also a table"):
        page.get_by_text("Show data table").click()
        expect(page.locator(".chart-table .sizes tbody tr")).to_have_count(sample.turn_count)
    with subtests.test("a printed chart fits the paper"):
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 700, "height": 900})
        assert fits_in_width(page)
        assert page.locator(".chart canvas").bounding_box()["width"] <= 700


def chart_image(page: Page) -> str:
    return chart_drawn(page).evaluate("over => over.closest('.u-wrap').querySelector('canvas').toDataURL()")


#: The number of hues, out of six, among the pixels of a chart; and the number of colors of its legend.
HUES = """(over) => {
  const canvas = over.closest(".u-wrap").querySelector("canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const hues = new Set();
  for (let at = 0; at < data.length; at += 4) {
    const pixel = [...data.slice(at, at + 3)];
    if (data[at + 3] === 255 && Math.max(...pixel) - Math.min(...pixel) > 60) {
      hues.add([0, 1, 2].sort((one, other) => pixel[one] - pixel[other]).join());
    }
  }
  const items = [...document.querySelectorAll(".chart-legend li")];
  return [hues.size, new Set(items.map((item) => getComputedStyle(item, "::before").borderTopColor)).size];
}"""


def test_a_chart_keeps_its_colors_and_the_figures_their_borders_in_high_contrast(at, page, project):
    page.emulate_media(forced_colors="active")
    at(address(make_session(project, [reading_turn(index) for index in range(3)])))
    hues, colors = chart_drawn(page).evaluate(HUES)
    expect(page.locator(".tiles > div").first).to_have_css("outline-style", "solid")
    page.emulate_media(forced_colors="none")
    assert (hues > 1, colors) == (True, 2)


def test_the_chart_of_costs_has_space_for_its_labels_and_bars(at, page, project):
    at(address(make_session(project, [reading_turn(index) for index in range(3)])))
    tokens = chart_drawn(page).bounding_box()
    page.get_by_role("button", name="Cost and cache").click()
    expect(page.locator(".chart-legend")).to_contain_text("Cost per call")
    expect(page.get_by_role("heading", name="Cost and cache hits per turn")).to_be_visible()
    assert chart_drawn(page).bounding_box()["x"] > tokens["x"]
    # Each of the three turns has a third of the width, also the first and the last one.
    for share, name in ((0.32, "Turn 0"), (0.35, "Turn 1"), (0.65, "Turn 1"), (0.68, "Turn 2")):
        assert name in tooltip_at(page, share)


def test_a_budget_far_above_every_prompt_is_stated_instead_of_drawn(at, page, project):
    session = make_session(project, [reading_turn(index) for index in range(3)])
    for budget, text in ((10_000, "Budget (10,000)"), (100_000, "Budget (100,000), above the chart")):
        session.budget_tokens = budget
        session.save()
        at(address(session))
        chart_drawn(page)
        expect(page.locator(".chart-legend li", has_text="Budget")).to_have_text(text)
        expect(page.locator(".chart-legend .key-budget")).to_have_count(int(budget == 10_000))


def test_a_changed_budget_is_drawn_from_the_turn_from_which_it_applies(at, page, project):
    session = make_session(project, [reading_turn(index) for index in range(4)])
    session.budget_tokens = 20_000
    session.save()
    session.turns.filter(index__lt=2).update(budget=10_000)
    at(address(session))
    chart_drawn(page)
    expect(page.locator(".chart-legend .key-budget")).to_have_text("Budget (now 20,000)")
    shares = []
    for share in (0.01, 0.99):
        shown = re.search(r"Share of budget\s+([\d.]+)%", tooltip_at(page, share))
        shares.append(float(shown[1]))
    sizes = session.turns.filter(index__in=(0, 3)).order_by("index").values_list("prompt_reported", flat=True)
    assert shares == [round(100 * sizes[0] / 10_000, 1), round(100 * sizes[1] / 20_000, 1)]


def test_a_compacted_session_states_what_compaction_keeps_out_of_its_prompt(at, page, project):
    session = compacted_session(project)
    session.turns.filter(index__gt=5).update(prompt_served=1_000)
    at(address(session))
    chart_drawn(page)
    expect(page.locator(".chart-legend")).to_contain_text("Kept out by compaction")
    expect(page.locator(".tiles > div").first).to_contain_text(
        re.compile(r"Next prompt: \d+% smaller than the transcript")
    )


def test_a_spike_of_tool_output_is_marked(at, page, project):
    turns = [reading_turn(n, "x y z " * (20_000 if n == 8 else 20)) for n in range(12)]
    session = make_session(project, turns)
    at(address(session))
    spike = session.turns.get(output_spike__isnull=False)
    assert spike.index == 8
    assert f"Tool output spike: {spike.output_spike:,} tokens" in tooltip_at(page, 8 / 11)
    expect(page.locator(".chart-legend .key-spike")).to_be_visible()


def test_the_keyboard_reads_the_chart_and_opens_a_turn(at, page, sample):
    at(address(sample))
    chart_drawn(page)
    last = sample.turn_count - 1
    chart = page.get_by_role("slider")
    page.get_by_role("button", name="Log", exact=True).focus()
    page.keyboard.press("Tab")
    expect(chart).to_be_focused()
    expect(chart).to_have_attribute("aria-valuetext", re.compile(f"^Turn {last}, "))
    page.keyboard.press("ArrowLeft")
    expect(chart).to_have_attribute("aria-valuetext", re.compile(f"^Turn {last - 1}, .* tokens"))
    expect(page.locator(".chart-tip")).to_contain_text(f"Turn {last - 1}")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.wait_for_url("**/turns/0/")


def test_a_click_on_the_chart_opens_the_turn(at, page, sample):
    at(address(sample))
    box = chart_drawn(page).bounding_box()
    page.keyboard.down("Control")
    with page.expect_popup() as opened:
        page.mouse.click(box["x"] + 4, box["y"] + box["height"] / 2)
    page.keyboard.up("Control")
    opened.value.wait_for_url("**/turns/0/")
    page.mouse.click(box["x"] + 4, box["y"] + box["height"] / 2)
    page.wait_for_url("**/turns/0/")
    expect(page.get_by_role("heading", name="What the model saw")).to_be_visible()


def test_dragging_zooms_in_and_the_button_resets_the_zoom(at, page, project):
    at(address(make_session(project, [reading_turn(index) for index in range(60)])))
    box = chart_drawn(page).bounding_box()
    zoom_out = page.get_by_role("button", name="Reset zoom")
    expect(zoom_out).to_be_hidden()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 80)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 90, steps=4)
    page.mouse.up()
    expect(zoom_out).to_be_visible()
    assert "Turn 45" in tooltip_at(page, 0.999)
    zoom_out.click()
    expect(zoom_out).to_be_hidden()
    assert "Turn 59" in tooltip_at(page, 0.999)


def test_one_turn_has_a_chart_too(at, page, project):
    at(address(make_session(project, [reading_turn(0)])))
    assert "1,005 tokens" in tooltip_at(page, 0.5)


def test_older_turns_load_without_moving_the_scroll_position(at, page, project):
    first = 60 - SHOWN
    at(address(make_session(project, [reading_turn(index) for index in range(60)])))
    expect(page.locator(".turn")).to_have_count(SHOWN)
    page.locator(f"#turn-{first + 1}").scroll_into_view_if_needed()
    page.get_by_role("link", name=re.compile("Older turns")).scroll_into_view_if_needed()
    page.get_by_role("link", name=re.compile("Older turns")).click()
    expect(page.locator(".turn")).to_have_count(2 * SHOWN)
    expect(page.locator(f"#turn-{first - SHOWN} time")).to_have_attribute("data-local", "")
    expect(page.locator(f"#turn-{first}")).to_be_in_viewport()
    # Back returns to the place that was read, although the page first shows the newest turns.
    read = page.locator(f"#turn-{first - SHOWN + 3}")
    read.evaluate("turn => scrollTo(0, turn.getBoundingClientRect().top + scrollY - 150)")
    read.locator("h3 a").click()
    expect(page.get_by_role("heading", name="What the model saw")).to_be_visible()
    page.go_back()
    expect(read).to_be_in_viewport()
    assert abs(read.bounding_box()["y"] - 150) < 10
    page.reload()
    expect(read).to_be_in_viewport()


def test_back_returns_to_the_place_in_a_filtered_transcript(at, page, project):
    at(f"{address(make_session(project, [reading_turn(index) for index in range(60)]))}?role=assistant")
    expect(page.locator("#turn-59")).to_be_attached()
    page.get_by_role("link", name="Older messages").click()
    read = page.locator("#turn-40")
    read.evaluate("turn => scrollTo(0, turn.getBoundingClientRect().top + scrollY - 150)")
    read.locator("h3 a").click()
    page.wait_for_url("**turn=40#turn-40")
    page.go_back()
    expect(read).to_be_in_viewport()
    assert abs(read.bounding_box()["y"] - 150) < 10
    assert "role=assistant" in page.url
    page.locator(".more-newer").scroll_into_view_if_needed()
    expect(page.locator("#turn-59")).to_be_attached()
    expect(page.locator(".message:not(.voice-assistant)")).to_have_count(0)
    # At the first one on the page, [ loads the older ones.
    first = page.locator(".turn").first
    number = int(first.get_attribute("data-turn"))
    first.locator("h3 a").focus()
    page.keyboard.press("[")
    expect(page.locator(f"#turn-{number - 1}")).to_be_attached()


def test_a_turn_that_does_not_exist_is_reported(at, page, project):
    at(address(make_session(project, [reading_turn(index) for index in range(60)])))
    for _ in range(2):
        page.get_by_label("Turn", exact=True).fill("999")
        page.get_by_role("button", name="Go", exact=True).click()
        notice = page.get_by_role("alert").filter(has_text="This session has turns 0 to 59.")
        expect(notice).to_be_in_viewport()


def test_newer_turns_load_on_scrolling_down(at, page, project):
    at(address(make_session(project, [reading_turn(index) for index in range(60)])) + "?turn=0")
    page.locator(".more-newer").scroll_into_view_if_needed()
    expect(page.locator(f"#turn-{SHOWN // 2 + SHOWN - 1}")).to_be_attached()


def test_a_long_output_opens(at, page, project):
    output = "\n".join(f"line {number}" for number in range(3_000))
    at(address(make_session(project, [reading_turn(0), reading_turn(1, output)])))
    expect(page.get_by_text("line 2999")).to_have_count(0)
    page.get_by_text(re.compile(r"Show all 3,000 lines")).click()
    expect(page.get_by_text("line 2999")).to_be_visible()


def test_filters_are_in_the_url_and_the_back_button_works(at, page, project):
    make_session(project, name="one", title="First thing", agent="alpha")
    make_session(project, name="two", title="Second thing", agent="beta")
    at(reverse("sessions", args=[project.slug]))
    page.locator("select[name=agent]").select_option("alpha")
    expect(page.locator("[data-row]")).to_have_count(1)
    assert page.url.endswith("/sessions/?agent=alpha")
    entries = page.evaluate("history.length")
    with page.expect_response("**/sessions/?agent=alpha"):
        page.locator("#q").press("Enter")
    expect(page.locator(".htmx-request, .htmx-settling")).to_have_count(0)
    assert page.evaluate("history.length") == entries
    page.get_by_role("link", name="First thing").click()
    page.wait_for_url("**/sessions/*-*/")
    page.go_back()
    expect(page.locator("[data-row]")).to_have_count(1)
    page.go_back()
    expect(page.locator("[data-row]")).to_have_count(2)


def test_a_printed_list_has_the_titles_of_sessions(at, page, project):
    make_session(project, name="n" * 60, title="Fix tide predictions at secondary ports", agent="a" * 40)
    at(reverse("sessions", args=[project.slug]))
    page.set_viewport_size({"width": 794, "height": 1123})  # A4
    page.emulate_media(media="print")
    title = page.get_by_role("link", name="Fix tide predictions at secondary ports")
    assert title.bounding_box()["width"] > 80
    assert title.evaluate("link => link.scrollHeight <= link.clientHeight + 1")


def test_a_date_filters_when_it_is_complete(at, page, project):
    make_session(project, name="one")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    for name, field in (("sessions", "active_from"), ("trends", "first")):
        at(reverse(name, args=[project.slug]))
        # A browser reports a change for each digit of the year.
        page.locator(f"[name={field}]").evaluate(
            """field => {
                for (const year of ["0002", "0020", "0202", "2025"]) {
                    field.value = `${year}-09-15`;
                    field.dispatchEvent(new Event("change", { bubbles: true }));
                }
            }"""
        )
        page.wait_for_url(f"**{field}=2025-09-15**")
        assert len([url for url in requests if f"/{name}/?" in url]) == 1
    page.locator("[name=measure]").select_option("tokens")
    page.wait_for_url("**measure=tokens**")


def test_search_while_typing(at, page, project):
    make_session(project, name="one", title="First thing")
    make_session(project, name="two", title="Second thing")
    at(reverse("sessions", args=[project.slug]))
    page.keyboard.press("/")
    page.keyboard.type("agent:")
    suggestions = page.get_by_role("listbox", name="Suggestions")
    expect(suggestions).to_be_visible()
    page.keyboard.press("Escape")
    expect(suggestions).to_be_hidden()
    page.locator("#q").fill("second")
    expect(page.locator("[data-row]")).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator("#q")).not_to_be_focused()
    expect(page.locator("#q")).to_have_value("second")


def test_keyboard_only(at, page, project):
    make_session(project, name="one", title="First thing")
    at(reverse("sessions", args=[project.slug]))
    page.get_by_role("checkbox", name="Select all sessions").check()  # a checkbox takes no letters
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions/*-*/")
    chart_drawn(page)
    page.keyboard.press("j")
    page.keyboard.press("]")
    expect(page.locator("#turn-1 h3 a")).to_be_focused()
    page.keyboard.press("[")
    expect(page.locator("#turn-0 h3 a")).to_be_focused()


def test_the_keyboard_stays_at_its_place_when_a_part_of_the_page_is_replaced(at, page, project):
    for number in range(51):
        make_session(project, name=f"session {number}")
    at(reverse("sessions", args=[project.slug]))
    by_turns = page.locator("th").get_by_role("link", name="Turns")
    by_turns.press("Enter")
    page.wait_for_url("**/?sort=turns")
    expect(by_turns).to_be_focused()
    page.get_by_role("link", name="More sessions").press("Enter")
    expect(page.locator("#list")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Back to the first page")).to_be_focused()
    at(reverse("session_turn", args=[project.slug, make_session(project).pk, 1]))
    search = page.get_by_role("searchbox", name="Search the transcript up to this turn")
    search.fill("nothing like this")
    search.press("Enter")
    expect(page.get_by_role("link", name="Back to the prompt")).to_be_visible()
    expect(search).to_be_focused()


def test_the_keyboard_stays_at_the_switch_between_changes_and_all_messages(at, page, project):
    session = compacted_session(project, name="compacted", turns=6)
    at(page_address("session_prompt", session))
    for name, next_name in (("changes only", "all messages"), ("all messages", "changes only")):
        page.get_by_role("link", name=f"Show {name}").press("Enter")
        expect(page.get_by_role("link", name=f"Show {next_name}")).to_be_focused()
        expect(page.locator(".htmx-settling")).to_have_count(0)


def test_the_palette_finds_pages_and_turns(at, page, project):
    session = make_session(project, name="one", title="First thing")
    at(reverse("sessions", args=[project.slug]))
    page.keyboard.press("Control+k")
    page.keyboard.type("first")
    expect(page.get_by_role("option", name="First thing")).to_have_attribute("aria-selected", "true")
    with page.context.expect_page() as opened:
        page.keyboard.press("Control+Enter")
    opened.value.wait_for_url(f"**{address(session)}")
    opened.value.close()
    page.keyboard.press("Control+k")
    page.keyboard.type("first")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{address(session)}")
    page.keyboard.press("Control+k")
    page.keyboard.type("1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/turns/1/")
    page.keyboard.press("[")
    page.wait_for_url("**/turns/0/")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("#entry-0 .message").first).to_be_visible()


def test_the_palette_finds_a_session_from_any_page(at, page, project):
    session = make_session(project, name="one", title="First thing")
    at(reverse("lab", args=[project.slug]))
    page.keyboard.press("Control+k")
    page.keyboard.type("thing fir")
    found = page.get_by_role("option")
    expect(found).to_have_text([re.compile("First thing"), re.compile("Search messages for")])
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{address(session)}")


def test_a_filter_is_built_from_suggestions(at, page, project):
    make_session(project, name="one", title="First thing", agent="code reader")
    make_session(project, name="two", title="Second thing", agent="writer")
    at(reverse("sessions", args=[project.slug]))
    page.keyboard.press("/")
    page.keyboard.type("ag")
    suggested = page.locator(".suggestions li")
    expect(suggested).to_contain_text(["agent:"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(suggested).to_contain_text(["code reader", "writer"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#q")).to_have_value('agent:"code reader" ')
    expect(page.locator("[data-row]")).to_have_count(1)
    page.locator("summary", has_text="Save view").click()
    page.get_by_label("View name").fill("Readers")
    page.get_by_role("button", name="Save view").click()
    expect(page.get_by_role("link", name="Readers")).to_be_visible()


def test_a_column_orders_the_list_and_a_filter_keeps_it(at, page, project):
    for n, words in enumerate(("few", "most of all", "some more")):
        make_session(project, [reading_turn(i) for i in range((1, 5, 3)[n])], name=f"s-{n}", title=words)
    at(reverse("sessions", args=[project.slug]))
    titles = page.locator("[data-row] .title")
    page.get_by_role("columnheader", name="Turns").get_by_role("link").click()
    expect(titles).to_have_text(["most of all", "some more", "few"])
    expect(page.get_by_role("columnheader", name="Turns")).to_have_attribute("aria-sort", "descending")
    page.locator("#q").fill("turns:>2")
    expect(titles).to_have_text(["most of all", "some more"])
    assert "sort=turns" in page.url
    page.get_by_role("columnheader", name="Last activity").get_by_role("link").click()
    expect(page.get_by_role("columnheader", name="Last activity")).to_have_attribute(
        "aria-sort", "descending"
    )
    assert "sort=" not in page.url
    page.locator("#q").fill("turns:>4")
    page.get_by_role("columnheader", name="Turns").get_by_role("link").click()  # before the filter is applied
    expect(titles).to_have_text(["most of all"])
    page.locator("#q").fill("nothing")
    expect(page.get_by_role("heading", name="No matching sessions")).to_be_visible()
    page.locator("#q").fill("turns:>2")
    expect(titles).to_have_text(["most of all", "some more"])
    assert "sort=turns" in page.url


def test_clicking_a_column_from_the_filter_sends_one_request(at, page, project):
    """With two requests, the response to the filter could arrive last and discard the order."""
    make_session(project, [reading_turn(0)], title="Read all")
    at(reverse("sessions", args=[project.slug]))
    page.locator("#q").fill("read")
    page.wait_for_url(re.compile("q=read"))
    sent: list[str] = []
    page.on("request", lambda request: "/sessions/?" in request.url and sent.append(request.url))
    page.get_by_role("columnheader", name="Turns").get_by_role("link").click()
    expect(page.get_by_role("columnheader", name="Turns")).to_have_attribute("aria-sort", "descending")
    assert ["sort=turns" in address for address in sent] == [True]


def test_names_are_readable_at_every_width(at, page, project, subtests):
    made = make_session(
        project, name="s-1", title="A session with a title", agent="an agent of a long name" * 3
    )
    sub_agent = make_session(project, name="sub", parent="s-1")
    sub_agent.cost_microusd, sub_agent.uncached_tokens = 75_500, 167_000
    sub_agent.save()
    made.uncached_tokens, made.budget_tokens = 1_310_000, 200_000
    made.tags = ["nightly", "a-tag-that-is-longer-than-others"]
    made.peak_prompt_tokens = made.last_prompt_tokens = 123_456
    made.cost_microusd, made.compaction_count = 12_345_678, 12
    made.save()
    UsageRollup.objects.create(
        project=project, session=made, at=made.started_at, hidden_tokens=4_180_000, saved_microusd=369_100
    )
    profile_write(session=made)
    at(reverse("sessions", args=[project.slug]))
    for width in (320, 390, 800, 1024, 1280):
        with subtests.test(width):
            page.set_viewport_size({"width": width, "height": 800})
            assert fits_in_width(page)
            assert page.locator("[data-row] .title").bounding_box()["width"] > 180


def test_the_header_takes_one_line_on_a_narrow_desktop(at, page, project, member, subtests):
    project.name = "A project with a rather long name"
    project.save()
    other = Project.objects.create(slug="another-one", name="Another one")
    Membership.objects.create(project=other, user=member, role=Role.MEMBER)
    for width in (780, 900, 1024, 1280):
        with subtests.test(width):
            page.set_viewport_size({"width": width, "height": 800})
            at(reverse("replay", args=[project.slug]))
            assert fits_in_width(page)
            boxes = [item.bounding_box() for item in page.locator("header.top > *:visible").all()]
            assert max(box["y"] for box in boxes) < min(box["y"] + box["height"] for box in boxes)
            expect(page.locator("header.top nav [aria-current]")).to_be_in_viewport()


def test_no_tag_of_a_session_is_cut_off_in_the_list(at, page, project, subtests):
    made = make_session(project, name="s-with-a-rather-long-id", title="A session")
    made.tags = ["x" * 100, *(f"release-candidate-{number}" for number in range(8))]
    made.save()
    at(reverse("sessions", args=[project.slug]))
    tags = page.locator("[data-row] a.tag")
    expect(tags).to_have_count(9)
    for width in (390, 1024, 1440):
        with subtests.test(width):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.locator("[data-row] > th").evaluate_all(CUT_OFF) == []


def test_controls_that_need_scripts_are_hidden_without_them(browser, logged_in, member, served_url, project):
    session = active_session(project)
    context = browser.new_context(base_url=served_url, java_script_enabled=False)
    for name, morsel in logged_in(member).cookies.items():
        context.add_cookies([{"name": name, "value": morsel.value, "url": served_url}])
    page = context.new_page()
    page.goto(reverse("sessions", args=[project.slug]))
    expect(page.get_by_role("button", name="Apply filter")).to_be_visible()
    expect(page.get_by_label(f"Select {session}")).to_be_visible()
    expect(page.get_by_label("Select all sessions on this page")).to_be_hidden()
    expect(page.get_by_text("Columns", exact=True)).to_be_hidden()
    page.goto(address(session))
    expect(page.get_by_role("heading", name="Transcript")).to_be_visible()
    expect(page.get_by_role("button", name="Live")).to_be_hidden()
    context.close()


def test_titles_and_names_of_tools_are_shown_whole_on_a_desktop(at, page, project):
    call = {"type": "tool_use", "id": "c", "name": "update_working_memory", "input": {}}
    output = {"type": "tool_result", "tool_use_id": "c", "content": "no", "is_error": True}
    messages = [message("assistant", [call], "a"), message("user", [output], "r")]
    title = "Review the import of the files of the harbour office"
    session = make_session(project, [turn(0, messages[:1]), turn(1, messages[1:])], title=title)
    is_whole = "name => name.scrollWidth <= name.clientWidth && name.scrollHeight <= name.clientHeight"
    at(reverse("sessions", args=[project.slug]))
    assert page.locator("[data-row] .title").evaluate(is_whole)
    at(page_address("session_past_prompt", session, 1))
    from_tool = page.locator(".who", has_text="update_working_memory")
    expect(from_tool).to_contain_text("error")
    assert from_tool.evaluate(is_whole)
    # If a name is too long, it is cut off, but not the mark after it.
    from_tool.locator(".tool").evaluate("name => { name.textContent = 'mcp__server__tool_'.repeat(5) }")
    mark = page.locator(".who .error-mark").bounding_box()
    row = page.locator(".who", has=page.locator(".error-mark")).bounding_box()
    assert mark["x"] + mark["width"] <= row["x"] + row["width"]


def test_words_in_the_titles_of_sub_agents_are_not_broken_on_a_phone(at, page, project):
    parent = make_session(project, name="s-1")
    make_session(project, name="sub", parent="s-1", title="Find arithmetic on naive times")
    page.set_viewport_size(PHONE)
    at(address(parent))
    title = page.locator(".tree").get_by_role("link", name="Find arithmetic on naive times")
    one_line = "link => { link.textContent = 'arithmetic'; return link.getClientRects().length === 1; }"
    assert title.evaluate(one_line)


def test_long_names_of_tools_wrap_on_a_phone(at, page, project, subtests):
    call = {"type": "tool_use", "id": "c", "name": "mcp__server__" + "long_name_" * 11, "input": {}}
    output = {"type": "tool_result", "tool_use_id": "c", "content": "line of output\n" * 2_000}
    messages = [
        message("user", "Go on.", "u"),
        message("assistant", [call], "a"),
        message("user", [output], "r"),
    ]
    session = make_session(project, [turn(0, messages[:1]), turn(1, messages[1:2]), turn(2, messages[2:])])
    page.set_viewport_size(PHONE)
    for view in ("session", "session_raw"):
        with subtests.test(view):
            at(page_address(view, session))
            expect(page.get_by_text("mcp__server__").first).to_be_attached()
            assert fits_in_width(page)
            assert page.locator(".turn").evaluate_all(CUT_OFF) == []


def test_long_names_wrap_on_a_phone(at, page, project, subtests):
    call = {"type": "tool_use", "id": "c", "name": "mcp__server__" + "longname" * 6, "input": {}}
    session = make_session(project, [turn(0, [message("assistant", [call], "a")])])
    message_pin(session=session, position=0, pinned=True)
    AgentSession.objects.filter(pk=session.pk).update(agent="agent" * 20, preamble_version=1)
    session.preambles.create(version=1, from_turn=0, tools=json_bytes([{"name": "Bash", "input_schema": {}}]))
    search_index_run()
    page.set_viewport_size(PHONE)
    for view, text in (
        (page_address("session_compactions", session), "assistant, mcp__server__"),
        (f"{reverse('tools', args=[project.slug])}?days=all", "Tool definitions of"),
        (f"{reverse('search', args=[project.slug])}?q=server", "1 message in 1 session"),
    ):
        with subtests.test(view):
            at(view)
            expect(page.get_by_text(text)).to_be_visible()
            assert fits_in_width(page)


def test_menus_open_within_the_window(at, page, project, subtests):
    session = make_session(project, [reading_turn(0)], name="s-with-a-rather-long-id")
    sessions = reverse("sessions", args=[project.slug])
    for width in (390, 1280):
        for url, name in (
            (sessions, "Save view"),
            (sessions, "Columns"),
            (address(session), "Edit title, tags and notes"),
        ):
            with subtests.test(name, width=width):
                page.set_viewport_size({"width": width, "height": 800})
                at(url)
                menu = page.locator("details.menu", has=page.locator("summary", has_text=name))
                menu.locator("summary").click()
                expect(menu.locator("summary + *")).to_be_visible()
                page.wait_for_function(INSIDE)
                assert fits_in_width(page)


def test_forms_in_menus_use_the_width_of_a_phone(at, page, project):
    page.set_viewport_size(PHONE)
    at(address(make_session(project, [reading_turn(0)])))
    page.locator("summary", has_text="Edit title, tags and notes").click()
    assert page.get_by_label("Title").bounding_box()["width"] > 300
    at(reverse("sessions", args=[project.slug]))
    page.locator("summary", has_text="Save view").click()
    assert page.get_by_role("button", name="Save view").bounding_box()["height"] < 40


def test_filters_are_behind_a_line_that_names_them_on_a_phone(at, page, project):
    page.set_viewport_size(PHONE)
    make_session(project, name="one", agent="alpha")
    at(reverse("sessions", args=[project.slug]))
    line = page.locator("summary", has_text="More filters: none")
    agent = page.locator("select[name=agent]")
    expect(agent).to_be_hidden()
    line.click()
    agent.select_option("alpha")
    line = page.locator("summary", has_text="More filters: Agent: alpha")
    line.click()
    expect(agent).to_be_hidden()
    at(reverse("trends", args=[project.slug]))
    page.locator("summary", has_text="cost per day by agent").click()
    page.locator("select[name=measure]").select_option("tokens")
    expect(page.locator("summary", has_text="tokens per day by agent")).to_be_visible()
    expect(page.locator("#active-filters")).to_have_count(1)


def test_the_id_of_a_session_is_copied(at, page, project):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    session = make_session(project, name="s-17")
    at(address(session))
    page.get_by_role("button", name="Copy ID").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "s-17"
    expect(page.get_by_role("button", name="Copy ID")).to_be_visible()


def test_copy_buttons_do_not_cover_the_text(at, page, project):
    """Even long lines, which scroll under nothing."""
    for name, size in (("replay", PHONE), ("connect", PHONE), ("connect", DESKTOP)):
        page.set_viewport_size(size)
        at(reverse(name, args=[project.slug]))
        expect(page.locator(".copyable > pre + button").first).to_be_visible()
        covered = page.locator(".copyable > pre").evaluate_all(
            "codes => codes.map(code => [code, code.nextElementSibling])"
            ".map(pair => pair.map(each => each.getBoundingClientRect()))"
            ".filter(([code, button]) => code.right > button.left && code.top < button.bottom).length"
        )
        assert covered == 0, (name, size)


def test_the_prompt_at_a_turn_is_copied(at, page, project):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    url = page_address("session_turn", compacted_session(project, budget=20_000), 5)
    at(url)
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    page.get_by_role("button", name="Copy JSON").click()
    expect(page.get_by_role("button", name="Copied")).to_have_count(2)
    assert json.loads(page.evaluate("navigator.clipboard.readText()"))["messages"]


def test_without_a_clipboard_no_copy_button_is_shown(at, page, project):
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    at(page_address("session_turn", compacted_session(project, budget=20_000), 5))
    expect(page.get_by_role("link", name="Open JSON")).to_be_visible()
    expect(page.get_by_role("button", name="Copy")).to_have_count(0)


def test_edited_messages_are_shown_next_to_the_original(at, page, project):
    session = compacted_session(project, budget=20_000)
    at(page_address("session_past_prompt", session, 12) + "?show=changed")
    page.locator(".prompt-row summary").first.click()
    expect(page.get_by_role("heading", name="What the model saw", exact=False).last).to_be_visible()
    expect(page.locator(".beside pre").first).to_be_visible()


def test_previews_of_right_to_left_text_show_its_beginning(at, page, project):
    session = make_session(project, [reading_turn(0), reading_turn(1, "خطأ: لم يتم العثور على الجلسة " * 20)])
    at(page_address("session_turn", session, 1))
    is_first_letter_visible = """(element) => {
        const text = document.createTreeWalker(element, NodeFilter.SHOW_TEXT).nextNode();
        const range = document.createRange();
        range.setStart(text, 0);
        range.setEnd(text, 1);
        const [letter, box] = [range, element].map(each => each.getBoundingClientRect());
        return box.left <= letter.left && letter.right <= box.right;
    }"""
    previews = page.locator(".preview", has_text="خطأ")
    expect(previews).to_have_count(2)
    assert [preview.evaluate(is_first_letter_visible) for preview in previews.all()] == [True, True]


def test_titles_of_mixed_scripts_are_read_in_the_direction_of_their_first_letter(at, page, project):
    session = make_session(project, title="أصلح الفواتير in pricing.py")
    is_right_to_left = """(element) => {
        const text = document.createTreeWalker(element, NodeFilter.SHOW_TEXT).nextNode();
        const left = (at) => {
            const range = document.createRange();
            range.setStart(text, at);
            range.setEnd(text, at + 1);
            return range.getBoundingClientRect().left;
        };
        const title = text.data.trimEnd();
        return left(title.search(/\\S/)) > left(title.length - 1);
    }"""
    at(reverse("sessions", args=[project.slug]))
    assert page.locator("[data-row] .title").evaluate(is_right_to_left)
    at(page_address("session", session))
    assert page.get_by_role("heading", level=1).evaluate(is_right_to_left)


def test_each_line_of_a_highlighted_change_takes_one_row(at, page, project):
    edit = {"file_path": "f.py", "old_string": "a = 1", "new_string": "a = 2  # two\nb = 3"}
    call = {"type": "tool_use", "id": "call-0", "name": "Edit", "input": edit}
    at(address(make_session(project, [turn(0, [message("assistant", [call], "a0")])])))
    lines = page.locator("pre.diff > span")
    expect(lines).to_have_count(3)
    heights = {round(line.bounding_box()["height"]) for line in lines.all()}
    assert len(heights) == 1
    assert heights.pop() < 30


def test_the_theme_is_remembered_and_rendered_by_the_server(at, page, project):
    at("/")
    switch = page.locator("[data-theme-switch]")
    switch.click()
    switch.click()
    expect(switch).to_contain_text("dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert 'data-theme="dark"' in page.request.get(page.url).text()


def test_times_are_local_with_utc_on_hover(browser, served_url, sample, member):
    with browser.new_context(base_url=served_url, timezone_id="Asia/Kathmandu") as context:
        page = context.new_page()
        log_in(page, member.username)
        time = page.locator("[data-row] time").first
        expect(time).to_have_attribute("data-local", "")
        utc = time.get_attribute("title")
        assert utc.endswith(" UTC")
        assert time.inner_text() != utc[:16]


#: The controls outside of lines of text that a finger can hardly hit (WCAG 2.5.8).
SMALL = """() => [...document.querySelectorAll("main :is(button, nav a, li > a, td > a, h3 a, summary)")]
  .filter((control) => control.checkVisibility() && !control.closest("p, pre, label"))
  .map((control) => [control.innerText || control.name, control.getBoundingClientRect()])
  .filter(([, { width, height }]) => width && height < 23)
  .map(([name]) => name)"""


def test_pages_fit_a_phone_screen(at, page, sample, project):
    page.set_viewport_size(PHONE)
    page.context.new_cdp_session(page).send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    compacted = compacted_session(project, name="c" * 200)
    compacted.agent, compacted.model, compacted.tags = "a" * 100, "m" * 200, ["t" * 100]
    compacted.save(update_fields=["agent", "model", "tags"])
    last = compacted.turn_count - 1
    for path in (
        reverse("sessions", args=[project.slug]),
        address(sample),
        page_address("session_turn", compacted, last),
        page_address("session_chart_table", compacted),
        page_address("session_compactions", compacted),
        page_address("session_compaction", compacted, 1),
        page_address("session_replay", compacted),
        page_address("session_prompt", compacted),
        page_address("session_raw", compacted),
        reverse("manual_page", args=["reference/api"]),
        reverse("manual_page", args=["guides/opentelemetry"]),
    ):
        at(path)
        assert fits_in_width(page), path
        assert page.evaluate(SMALL) == [], path


def test_the_api_reference_is_readable_on_a_phone(page, served_url):
    page.set_viewport_size(PHONE)
    page.goto("/api/docs/")
    descriptions = page.locator(".opblock-tag small")
    expect(descriptions.first).to_be_visible()
    assert all(each.bounding_box()["width"] > 250 for each in descriptions.all())
    # axe-core does not see the filter that inverts the colors in the dark theme.
    page.evaluate(Axe().axe_script)
    found = page.evaluate("axe.run(document, { runOnly: ['color-contrast'] })")
    assert found["violations"] == []
