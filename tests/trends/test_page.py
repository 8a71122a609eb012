"""The trends page: totals, groups, comparison, savings, chart and CSV."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from django.http import QueryDict
from django.urls import reverse

import pricing
from accounts.models import Membership, Role
from sessions.models import AgentSession, Compaction, SampleLoad
from sessions.pages.trends.parameters import presets
from sessions.selectors.days import Span, span_before
from sessions.selectors.trends.groups import GROUPS
from sessions.selectors.trends.projection import month_project
from sessions.selectors.trends.sums import TrendQuery
from sessions.selectors.usage import usage_sums
from sessions.services.spending.rollups import rollups_fill
from tests.markup import one_line
from tests.plugins.reused import reused
from tests.trends.turns import session_make, turn_make, turns_add

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
MARCH = {"first": "2026-03-01", "last": "2026-03-31"}


def address(name: str = "trends") -> str:
    return reverse(name, args=["alpha"])


@reused
def used(project, member):
    """Usage by two agents with three models, a tag and a member; one call at 23:50 UTC, one unpriced."""
    fixer = session_make(project, "fix", agent="fixer", tags=["ci", "red"], created_by=member)
    reader = session_make(project, "read", agent="reader", title="Reads a lot")
    late = NOON.replace(hour=23, minute=50)
    turns_add(fixer, [turn_make(fixer, 0, NOON, cost=2_500_000), turn_make(fixer, 1, late, cost=500_000)])
    turns_add(
        reader,
        [
            turn_make(reader, 0, NOON, cost=1_000_000, model="gpt-5"),
            turn_make(reader, 1, NOON, cost=None, model="made-up"),
            turn_make(reader, 2, NOON - timedelta(days=20), cost=1_500_000),
        ],
    )
    rollups_fill()
    return project


def test_the_table_shows_the_change_of_the_cost_in_dollars(used, viewer_client):
    page = one_line(viewer_client.get(address(), MARCH | {"group": "agent"}))
    # The reader cost $1.50 in the previous period and $1.00 in this one; the fixer was not used before.
    assert '−33% <span class="under"><data value="-500000" title="−$0.500000">−$0.50</data></span>' in page
    page = one_line(viewer_client.get(address(), MARCH | {"group": "agent", "other": "2026-01-01"}))
    assert '<span class="none">new</span> </td>' in page


def test_small_changes_have_a_decimal(project, viewer_client):
    session = session_make(project, "steady")
    month_ago = NOON - timedelta(days=31)
    turns_add(
        session,
        [turn_make(session, 0, month_ago, cost=1_000_000), turn_make(session, 1, NOON, cost=1_004_000)],
    )
    rollups_fill()
    page = one_line(viewer_client.get(address(), MARCH | {"other": "2026-02-01"}))
    assert "+0.4% from " in page
    assert "±0% from " in page  # the number of turns


def test_the_cost_of_groups_that_are_no_longer_used_is_stated(used, viewer_client):
    text = "Groups without usage in this period cost"
    assert text not in one_line(viewer_client.get(address(), MARCH | {"group": "agent"}))
    page = one_line(viewer_client.get(address(), MARCH | {"group": "agent", "agent": "reader"}))
    assert text not in page
    days = {"first": "2026-03-11", "last": "2026-03-11", "group": "model"}
    late = one_line(viewer_client.get(address(), days | {"zone": "Asia/Kolkata"}))
    # In India, the late call was on March 11, and the others on March 10.
    assert f'{text} <data value="1000000" title="$1.000000">$1.00</data>' in late


def test_the_tiles_show_the_totals_of_the_period(used, viewer_client):
    context = viewer_client.get(address(), MARCH).context
    assert context["total"].cost_microusd == 4_000_000
    assert (context["total"].turns, context["total"].unpriced_turns) == (4, 1)
    # A month is compared with the month before.
    assert context["parameters"].previous.span.first == date(2026, 2, 1)
    assert context["total_previous"].cost_microusd == 1_500_000


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "Asia/Kathmandu", "America/Los_Angeles"])
def test_days_follow_the_time_zone_of_the_viewer(zone, used, viewer_client):
    viewer_client.cookies["zone"] = zone
    data = viewer_client.get(address("trends_series"), {**MARCH, "bucket": "day"}).json()
    span = Span(first=date(2026, 3, 1), last=date(2026, 3, 31), zone=ZoneInfo(zone))
    _, turns = usage_sums(project_id=used.pk, span=span, groups=["day"], limit=100)
    expected = {row.group["day"].isoformat(): row.cost_microusd for row in turns if row.cost_microusd}
    columns = [sum(series["values"][at] for series in data["series"]) for at in range(len(data["buckets"]))]
    assert {day: value for day, value in zip(data["buckets"], columns, strict=True) if value} == expected
    assert len(data["buckets"]) == 31


def test_an_unknown_zone_is_utc(used, viewer_client):
    viewer_client.cookies["zone"] = "../etc/passwd"
    assert viewer_client.get(address()).context["parameters"].current.span.zone.key == "UTC"


@pytest.mark.parametrize(
    ("group", "first"),
    [
        ("agent", ("fixer", 3_000_000)),
        ("model", ("claude-sonnet-4-5", 3_000_000)),
        ("tag", ("ci", 3_000_000)),
        ("member", ("marc", 3_000_000)),
        ("session", ("fix", 3_000_000)),
    ],
)
def test_figures_split_by(group, first, used, viewer_client):
    response = viewer_client.get(address(), {**MARCH, "group": group})
    row = response.context["rows"][0]
    assert (row.name, row.sums.cost_microusd) == first
    assert first[0].encode() in response.content
    assert response.context["total"].cost_microusd == 4_000_000


@pytest.mark.slow
def test_groups_are_split_by_a_second_property(used, viewer_client):
    query = {**MARCH, "group": "agent", "split": "model"}
    context = viewer_client.get(address(), query).context
    costs = {row.name: row.sums.cost_microusd for row in context["rows"]}
    assert costs == {
        "fixer · claude-sonnet-4-5": 3_000_000,
        "reader · gpt-5": 1_000_000,
        "reader · made-up": 0,
    }
    assert context["total"].cost_microusd == 4_000_000
    assert "agent=reader" in context["rows"][1].query
    assert "model=gpt-5" in context["rows"][1].query
    data = viewer_client.get(address("trends_series"), query).json()
    assert [series["name"] for series in data["series"]] == ["fixer · claude-sonnet-4-5", "reader · gpt-5"]
    rows = csv.DictReader(io.StringIO(viewer_client.get(address("trends_csv"), query).text))
    assert {(row["agent"], row["model"]) for row in rows} >= {
        ("fixer", "claude-sonnet-4-5"),
        ("reader", "gpt-5"),
    }
    by_tag = viewer_client.get(address(), {**query, "split": "tag"}).context
    assert {row.name for row in by_tag["rows"]} == {"fixer · ci", "fixer · red", "reader · No tag"}
    assert by_tag["total"].cost_microusd == 4_000_000
    by_session = viewer_client.get(address(), {**query, "group": "session"})
    session = AgentSession.objects.get(external_id="read")
    assert "Reads a lot · gpt-5" in by_session.text
    assert reverse("session", args=[used.slug, session.pk]) in by_session.text
    assert viewer_client.get(address(), {**query, "split": "agent"}).context["parameters"].split == ""


def test_figures_are_narrowed(used, member, viewer_client):
    narrowed = {"agent": "fixer", "tag": "red", "model": "claude-sonnet-4-5", "member": member.pk}
    for name, value in narrowed.items():
        context = viewer_client.get(address(), {**MARCH, name: value}).context
        assert context["total"].cost_microusd == 3_000_000
        assert context["filters"][0][:2] == (name, "marc" if name == "member" else value)


def test_comparing_two_chosen_periods(used, viewer_client):
    query = {"first": "2026-03-10", "last": "2026-03-10", "other": "2026-02-18"}
    context = viewer_client.get(address(), query).context
    assert context["parameters"].previous.span.last == date(2026, 2, 18)
    rows = {row.name: (row.sums.cost_microusd, row.previous.cost_microusd) for row in context["rows"]}
    assert rows == {"fixer": (3_000_000, 0), "reader": (1_000_000, 1_500_000)}


def test_the_comparison_moves_with_the_period_unless_chosen(used, viewer_client):
    links = viewer_client.get(address(), MARCH).context["parameters"]
    assert "other=" not in links.query_string(first="2026-03-05")
    chosen = viewer_client.get(address(), {**MARCH, "other": "2026-01-02"}).context["parameters"]
    assert "other=2026-01-02" in chosen.query_string(agent="fixer")


def test_a_period_that_is_too_long_is_cut_with_a_notice(used, viewer_client):
    page = viewer_client.get(address(), {"first": "2020-01-01", "last": "2026-03-31"})
    assert page.context["parameters"].current.span.days == 2_282
    page = viewer_client.get(address(), {"first": "2010-01-01", "last": "2026-03-31", "bucket": "day"})
    assert page.context["parameters"].current.span.days == 3_660
    assert page.context["parameters"].bucket == "month"
    assert "Showing only the last 3660 days of this period" in page.text
    assert "Days are shown for up to two years." in page.text
    assert "Showing only the last" not in viewer_client.get(address(), MARCH).text


def test_client_compactions_are_counted(project, viewer_client):
    session = session_make(project, "s")
    marker = {"trigger": "auto", "tokens_before": 9_000}
    turns = [turn_make(session, n, NOON, client_compaction=marker if n else None) for n in (0, 1, 2)]
    turns_add(session, turns)
    rollups_fill()
    page = viewer_client.get(address(), MARCH)
    assert page.context["total"].client_compactions == 2
    assert "+ 2 by clients" in one_line(page)
    assert f'<a href="{address("replay")}">Replay sessions</a> to estimate the savings' in one_line(page)
    other = viewer_client.get(address(), {"first": "2026-04-01", "last": "2026-04-30"})
    assert other.context["total"].client_compactions == 0


@pytest.mark.slow
def test_references_to_removed_content_are_those_of_the_period(project, viewer_client):
    session = session_make(project, "s", agent="fixer", last_active_at=NOON, compaction_count=1)
    compaction = Compaction.objects.create(
        session=session, number=1, state="done", trigger="soft", turn_index=0, snapshot_position=0,
        finished_at=NOON,
    )  # fmt: skip
    session.edits.create(
        compaction=compaction, ordinal=0, strategy="collapse", op="replace", position=0, end=0, part=0,
        tokens_before=900, tokens_after=9,
    )  # fmt: skip
    turns_add(session, [turn_make(session, 0, NOON)])
    rollups_fill()
    page = viewer_client.get(address(), MARCH).text
    assert "replay/rates/?first=2026-03-01" in page
    assert '<div id="needed-again">' in page
    rates = reverse("replay_rates", args=["alpha"])
    response = viewer_client.get(rates, {**MARCH, "tile": "1"}, headers={"HX-Request": "true"})
    assert [rate.name for rate in response.context["rates"]] == ["collapse"]
    assert '<div id="needed-again" hx-swap-oob="true">' in response.text  # the tile of the page
    assert "0 <small>of 1 edit</small>" in one_line(response)
    assert viewer_client.get(rates, {**MARCH, "agent": "reader"}).context["rates"] == []
    april = {"first": "2026-04-01", "last": "2026-04-30"}
    assert viewer_client.get(rates, april).context["rates"] == []


@pytest.mark.slow
def test_net_savings_deduct_cache_rewrites_summaries_and_extraction(project, viewer_client):
    session = session_make(project, "s", model="claude-sonnet-4-5")
    shrunk = {"prompt_estimate": 1_010_000, "prompt_served": 10_000, "prompt_reported": 10_000}
    turns_add(session, [turn_make(session, 0, NOON, cache_read_tokens=9_000, **shrunk)])
    kinds = [
        (0, {"strategies": ["collapse"]}),
        (20_000, {"strategies": ["recap"], "summary_used": True, "summarizer_needed": True}),
        (0, {"strategies": ["recap"]}),  # no key: the recap was extracted
        (5_000, {"strategies": ["recap"], "fallback": "SummaryUnavailable", "summarizer_needed": True}),
        (7_000, {}),
    ]
    for number, (cost, notes) in enumerate(kinds, start=1):
        Compaction.objects.create(
            session=session,
            number=number,
            state="done" if number < 5 else "failed",
            trigger="soft",
            turn_index=0,
            snapshot_position=0,
            record={"tokens_rebilled": 10_000, "tokens_new": 2_000, "calibration": 1.5, **notes},
            cost_microusd=cost,
            finished_at=NOON,
        )
    tokens = dict.fromkeys(("uncached", "cache_read", "cache_write", "output"), 1)
    for at, cost in ((NOON, 3_000), (NOON, None), (NOON + timedelta(days=90), 5_000)):
        session.memory_extractions.create(
            at=at,
            model="claude-haiku-4-5",
            first_turn=0,
            end_turn=1,
            state="failed",
            requests=1,
            cost_microusd=cost,
            **{f"{name}_tokens": count for name, count in tokens.items()},
        )
    rollups_fill()
    response = viewer_client.get(address(), MARCH)
    assert "Memory extraction cost" in response.content.decode()
    savings = response.context["savings"]
    [rates, *_] = pricing.rates("claude-sonnet-4-5", NOON)
    cached, uncached = rates.cache_read, rates.uncached
    assert savings.rebilled == 0  # no call has read the shorter prompts yet
    session.last_active_at, session.compaction_count = NOON + timedelta(hours=1), 4
    session.save(update_fields=["last_active_at", "compaction_count"])
    unreported = turn_make(session, 1, session.last_active_at, cost=None, prompt_reported=None)
    turns_add(session, [unreported, turn_make(session, 2, session.last_active_at, cost=0)])
    fork = session_make(project, "fork", forked_at=1, last_active_at=session.last_active_at)
    for copy in session.compactions.filter(state="done"):
        copy.pk, copy.session, copy.cost_microusd = uuid4(), fork, None
        copy.save(force_insert=True)
    turns_add(fork, [turn_make(fork, index, session.last_active_at, billed=index > 0) for index in range(3)])
    response = viewer_client.get(address(), MARCH)
    savings = response.context["savings"]
    assert savings.gross == cached * 1_000_000 * 1_000_000
    # A cache write costs 25% more than an uncached token. New tokens must be cached in any case.
    assert savings.rebilled == (uncached * 5 / 4 - cached) * 4 * 8_000 * Decimal("1.5") * 1_000_000
    assert savings.summarizer == 32_000
    assert savings.reader == 3_000
    assert savings.net == savings.gross - savings.rebilled - 32_000 - 3_000
    # Each grouping shows the same net savings, also those by the tags of the session.
    session.tags = ["ci", "red"]
    session.save(update_fields=["tags"])
    for group in (*GROUPS, "model,tag"):
        grouped = viewer_client.get(
            address(), {**MARCH, **dict(zip(("group", "split"), group.split(","), strict=False))}
        )
        assert {row.savings.net for row in grouped.context["rows"]} == {savings.net}, group
        assert grouped.context["savings"] == savings
    [compared] = viewer_client.get(address("trends_projects"), MARCH).context["rows"]
    assert compared.usage.savings == savings
    # The cost of the calls, 100 micro-dollars, does not contain summaries and extraction.
    without = savings.gross - savings.rebilled + 100
    assert f'without compaction: about <data value="{without}"' in one_line(response)
    assert (savings.compactions, savings.without_model) == (4, 1)
    assert (savings.needed, savings.recaps, savings.by_model) == (2, 3, 1)
    sessions = viewer_client.get(reverse("sessions", args=["alpha"])).context["page"].rows
    [row] = (row for row in sessions if row.session == session)
    assert row.savings.microusd == savings.net - 5_000  # with the extraction after the period
    own = one_line(viewer_client.get(reverse("session", args=["alpha", session.pk])))
    assert f'Saved by compaction </dt> <dd> <span class="good"><data value="{row.savings.microusd}"' in own
    assert "4 compactions</a>" in own
    page = one_line(response)
    assert ">−$0.032</data>" in page
    assert "25% without a recap" in page
    assert "1 of 3 recaps written by a model" in page
    assert "2 recaps needed to fit the budget" in page


def test_the_csv_is_exact_and_cannot_be_a_formula(project, viewer_client):
    session = session_make(project, "s", agent="=2+5")
    turns_add(session, [turn_make(session, 0, NOON, cost=1_234_567)])
    rollups_fill()
    response = viewer_client.get(address("trends_csv"), {**MARCH, "bucket": "week"})
    [row] = csv.DictReader(io.StringIO(response.content.decode()))
    assert (row["week"], row["agent"], row["cost_usd"]) == ("2026-03-09", "'=2+5", "1.234567")
    assert (row["turns"], row["cache_read_tokens"]) == ("1", "80")


def test_the_most_expensive_sessions_exclude_free_ones(used, viewer_client):
    free = session_make(used, "free", agent="reader")
    turns_add(free, [turn_make(free, 0, NOON, cost=None)])
    nameless = session_make(used, "nameless")
    turns_add(nameless, [turn_make(nameless, 0, NOON, cost=100)])
    rollups_fill()
    page = viewer_client.get(address(), MARCH)
    assert [session.title for session in page.context["top"]] == ["fix", "Reads a lot", "nameless"]
    assert '<span class="under"> 1 turn </span>' in one_line(page)


@pytest.mark.slow
def test_a_cost_without_tokens_is_shown(project, viewer_client):
    session = session_make(project, "priced-by-its-log", agent="openhands")
    without_tokens = dict.fromkeys(
        ("uncached_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens"), 0
    )
    turns_add(session, [turn_make(session, 0, NOON, cost=1_250_000, **without_tokens)])
    rollups_fill()
    page = one_line(viewer_client.get(address(), MARCH | {"group": "agent"}))
    assert "no usage" not in page
    assert page.count(">$1.25<") >= 2
    assert '<td class="number none">–</td>' in page
    assert ">0%<" not in page


def test_small_groups_are_combined_in_the_chart(project, viewer_client):
    for number in range(12):
        session = session_make(project, f"s{number}", agent=f"a{number:02}")
        turns_add(session, [turn_make(session, 0, NOON, cost=1_000 + number)])
    rollups_fill()
    data = viewer_client.get(address("trends_series"), MARCH).json()
    assert [series["name"] for series in data["series"]][-2:] == ["a05", "All others"]
    assert sum(sum(series["values"]) for series in data["series"]) == sum(1_000 + n for n in range(12))


@pytest.mark.parametrize(
    "query",
    [
        {"first": "nonsense"},
        {"first": "9999-12-31"},
        {"first": "2026-03-31", "last": "2026-03-01"},
        {"first": "2000-01-01", "last": "2999-12-31"},
        {"other": "2999-12-31"},
        {"group": "password"},
        {"bucket": "hour"},
        {"split": "session"},
        {"member": "x"},
        {"agent": "\0"},
    ],
)
def test_invalid_parameters_are_ignored(query, used, viewer_client):
    for name in ("trends", "trends_series", "trends_csv"):
        assert viewer_client.get(address(name), query).status_code == 200


def test_unknown_parameters_and_time_zones_are_reported(used, viewer_client):
    page = one_line(viewer_client.get(address(), MARCH | {"agnet": "fixer", "<b>": ""}))
    assert "Unknown parameters are ignored: &lt;b&gt;, agnet." in page
    assert "Unknown time zone." in viewer_client.get(address(), MARCH | {"zone": "Mars/Base"}).text


def test_links_keep_the_time_zone_of_the_url(used, viewer_client):
    page = viewer_client.get(address(), MARCH | {"zone": "Asia/Tokyo"})
    assert "Unknown" not in page.text
    assert {QueryDict(query).get("zone") for _, query, _ in page.context["presets"]} == {"Asia/Tokyo"}
    assert '<input type="hidden" name="zone" value="Asia/Tokyo">' in page.text


def test_an_empty_period(project, viewer_client):
    response = viewer_client.get(address(), MARCH)
    assert b"No usage in this period" in response.content
    assert viewer_client.get(address("trends_series"), MARCH).json()["series"] == []


def test_usage_of_other_projects_is_not_included(used, other_project, stranger_client):
    own = reverse("trends", args=["beta"])
    assert stranger_client.get(own, MARCH).context["total"].turns == 0


@pytest.mark.slow
def test_projects_are_compared(used, other_project, stranger, viewer, viewer_client, logged_in):
    page = viewer_client.get(address("trends_projects"), MARCH)
    [row] = page.context["rows"]
    assert (row.project, row.usage.sessions, row.usage.sums.turns) == (used, 2, 4)
    assert (row.usage.sums.cost_microusd, row.previous) == (4_000_000, 1_500_000)
    assert "Compare projects" not in viewer_client.get(address(), MARCH).text
    # Members of both projects compare them, whichever is open and whatever it is filtered by.
    session = session_make(other_project, "other")
    turns_add(session, [turn_make(session, 0, NOON, cost=9_000_000)])
    rollups_fill()
    assert [row.project for row in viewer_client.get(address("trends_projects"), MARCH).context["rows"]] == [
        used
    ]
    Membership.objects.create(project=used, user=stranger, role=Role.VIEWER)
    both = logged_in(stranger)
    query = {**MARCH, "agent": "fixer"}
    assert "Compare projects" in both.get(address(), query).text
    page = both.get(address("trends_projects"), query)
    assert [row.project for row in page.context["rows"]] == [other_project, used]
    assert f'href="{reverse("trends", args=["beta"])}?first=2026-03-01' in page.text
    assert "agent=fixer" not in page.text
    assert page.context["found"].sums.cost_microusd == 13_000_000
    total = " ".join(page.text.partition("<tfoot>")[2].partition("</tfoot>")[0].split())
    assert all(value in total for value in ("2 projects", "$13.00", "+767%", ">3<", ">5<"))
    # The period of all usage begins with that of any project.
    [(_, all_time, _)] = [each for each in page.context["presets"] if each[0] == "All time"]
    assert QueryDict(all_time)["first"] == "2026-02-18"
    [header, *lines] = csv.reader(io.StringIO(both.get(address("trends_projects_csv"), query).text))
    found = [dict(zip(header, line, strict=True)) for line in lines]
    assert [(line["slug"], line["cost_usd"], line["previous_cost_usd"]) for line in found] == [
        ("beta", "9.000000", "0.000000"),
        ("alpha", "4.000000", "1.500000"),
    ]
    # A page after the last, of a bookmark or a longer period, is the last.
    past = both.get(address("trends_projects"), {**MARCH, "page": 7})
    assert [row.project for row in past.context["rows"]] == [other_project, used]
    later = both.get(address("trends_projects"), {"first": "2026-05-01", "last": "2026-05-31"})
    assert "2 projects without usage in this period are not listed" in one_line(later)


def test_sample_data_can_be_excluded(used, viewer_client):
    sample = AgentSession.objects.get(external_id="fix")
    hint = "This project contains sample data."
    assert hint not in viewer_client.get(address(), MARCH).text
    SampleLoad.objects.create(project=used, state=SampleLoad.State.DONE, total=1, sessions=[sample.pk])
    with_it = viewer_client.get(address(), MARCH)
    assert hint in with_it.text
    assert with_it.context["total"].cost_microusd == 4_000_000
    query = {**MARCH, "sample": "exclude"}
    without = viewer_client.get(address(), query)
    assert hint not in without.text
    assert "sample data <b>excluded</b>" in one_line(without)
    assert without.context["total"].cost_microusd == 1_000_000
    assert {row.name for row in without.context["rows"]} == {"reader"}
    assert "fixer" not in viewer_client.get(address("trends_csv"), query).text
    assert {each["name"] for each in viewer_client.get(address("trends_series"), query).json()["series"]} == {
        "reader"
    }
    for name in ("trends_prompts", "replay_rates"):
        assert viewer_client.get(address(name), query).status_code == 200
    # The comparison of projects keeps this filter, in the table, the link and the export.
    projects = viewer_client.get(address("trends_projects"), MARCH)
    assert projects.context["found"].sums.cost_microusd == 4_000_000
    assert "sample=exclude" in projects.text
    projects = viewer_client.get(address("trends_projects"), query)
    assert projects.context["found"].sums.cost_microusd == 1_000_000
    assert "sample data <b>excluded</b>" in one_line(projects)
    assert "1.000000" in viewer_client.get(address("trends_projects_csv"), query).text


def test_a_preset_keeps_the_other_parameters(used, viewer_client):
    query = {**MARCH, "group": "model", "measure": "saved", "agent": "fixer"}
    page = viewer_client.get(address(), query, headers={"HX-Request": "true"})
    queries = {name: QueryDict(query) for name, query, _ in page.context["presets"]}
    last_month = queries["Last month"]
    assert {name: last_month[name] for name in ("group", "measure", "agent")} == {
        "group": "model", "measure": "saved", "agent": "fixer",
    }  # fmt: skip
    assert last_month["first"] != MARCH["first"]
    assert "Last month" in page.text


@pytest.mark.parametrize(
    ("days", "previous"),
    [
        (("2026-02-01", "2026-02-28"), ("2026-01-01", "2026-01-31")),
        (("2026-03-01", "2026-03-30"), ("2026-02-01", "2026-02-28")),
        (("2026-03-01", "2026-03-10"), ("2026-02-01", "2026-02-10")),
        (("2026-01-01", "2026-01-31"), ("2025-12-01", "2025-12-31")),
        (("2026-03-02", "2026-03-11"), ("2026-02-20", "2026-03-01")),
        (("2026-01-01", "2026-03-10"), ("2025-01-01", "2025-03-10")),
        (("2024-01-01", "2024-02-29"), ("2023-01-01", "2023-02-28")),
        (("2025-01-01", "2025-02-28"), ("2024-01-01", "2024-02-29")),
        (("2026-07-01", "2026-09-30"), ("2026-04-01", "2026-06-30")),
        (("2026-04-01", "2026-06-30"), ("2026-01-01", "2026-03-31")),
        (("2025-11-01", "2026-02-28"), ("2025-07-01", "2025-10-31")),
        (("2026-07-01", "2026-09-29"), ("2026-04-01", "2026-06-30")),
    ],
)
def test_a_period_is_compared_with_the_one_before(days, previous):
    first, last = map(date.fromisoformat, days)
    before = span_before(Span(first=first, last=last, zone=ZoneInfo("UTC")))
    assert (before.first.isoformat(), before.last.isoformat()) == previous


def test_all_time_begins_with_the_first_usage(used, viewer_client):
    context = viewer_client.get(address(), MARCH).context
    [query] = [query for name, query, _ in context["presets"] if name == "All time"]
    assert QueryDict(query)["first"] == "2026-02-18"


class TestProjection:
    @pytest.fixture
    def spend(self, project):
        session = session_make(project, "s", agent="reader")

        def of(costs: dict[date, float]) -> None:
            moments = ((datetime.combine(day, NOON.time(), UTC), cost) for day, cost in costs.items())
            turns = [
                turn_make(session, at, moment, cost=round(cost * 1_000_000))
                for at, (moment, cost) in enumerate(moments)
            ]
            turns_add(session, turns)
            rollups_fill()

        return of

    def project_month(self, project, today: date, **filters):
        span = Span(first=today, last=today, zone=ZoneInfo("UTC"))
        return month_project(project_id=project.pk, query=TrendQuery(span=span, **filters), today=today)

    def test_a_steady_cost_continues(self, project, spend):
        spend({date(2026, 3, 10) - timedelta(days=n): 2 for n in range(20)})
        found = self.project_month(project, date(2026, 3, 10))
        assert (found.spent, found.expected) == (20_000_000, 62_000_000)
        assert found.low == found.high == found.expected
        assert self.project_month(project, date(2026, 3, 10), agent="writer") is None

    def test_weekends_are_projected_separately(self, project, spend):
        days = [date(2026, 3, 13) - timedelta(days=n) for n in range(1, 29)]
        spend({day: 10 for day in days if day.weekday() < 5})
        found = self.project_month(project, date(2026, 3, 13))
        # Nine workdays before that Friday, it and twelve after it.
        assert found.expected == 22 * 10_000_000

    def test_a_varying_cost_has_a_range(self, project, spend):
        spend({date(2026, 3, 10) - timedelta(days=n): 1 + n % 5 for n in range(1, 20)})
        found = self.project_month(project, date(2026, 3, 10))
        assert found.spent < found.low < found.expected < found.high

    def test_a_week_of_usage_is_needed(self, project, spend, viewer_client):
        today = datetime.now(UTC).date()
        spend({today - timedelta(days=n): 1 for n in range(6)})
        assert self.project_month(project, today) is None
        assert "Projected for" not in viewer_client.get(address()).text

    def test_the_page_shows_the_range(self, project, spend, viewer_client):
        today = datetime.now(UTC).date()
        spend({today - timedelta(days=n): 1 + n % 3 for n in range(20)})
        page = one_line(viewer_client.get(address()))
        assert f"Projected for {today:%B}" in page
        assert "80% range" in page


def test_presets_are_whole_weeks_and_months():
    spans = {name: (str(first), str(last)) for name, first, last in presets(date(2026, 3, 11))}
    assert spans["Last week"] == ("2026-03-02", "2026-03-08")
    assert spans["Last month"] == ("2026-02-01", "2026-02-28")


@pytest.mark.parametrize("group", GROUPS)
def test_the_page_takes_few_queries(group, used, viewer_client, django_assert_max_num_queries):
    # The savings of tags do not add up to the total, because a session can have several.
    with django_assert_max_num_queries(20 if group == "tag" else 18):
        assert viewer_client.get(address(), {**MARCH, "group": group}).status_code == 200


def test_the_table_of_the_chart_has_its_figures(used, viewer_client):
    for query, total in (
        ({"bucket": "day"}, ["Total"]),
        ({"bucket": "month", "group": "model"}, ["Total"]),
        ({"bucket": "week", "measure": "tokens"}, ["Total"]),
        ({"group": "tag"}, []),  # a session can have several tags, so their sum is not the total
    ):
        data = viewer_client.get(address("trends_series"), MARCH | query).json()
        page = one_line(viewer_client.get(address("trends_table"), MARCH | query))
        names = [series["name"] for series in data["series"]]
        assert re.findall(r'<th scope="col" class="number">([^<]*)</th>', page) == names + total
        rows = [
            [int(value) for value in re.findall(r'data value="(\d+)"', row)] for row in page.split("<tr>")[2:]
        ]
        columns = zip(*(series["values"] for series in data["series"]), strict=True)
        assert rows == [[*values, *(sum(values) for _ in total)] for values in columns if any(values)]
        assert ("Week of Mar 9, 2026" in page) == (data["bucket"] == "week")
    empty = viewer_client.get(address("trends_table"), {"first": "2025-03-01", "last": "2025-03-02"})
    assert "No data in this period." in one_line(empty)
