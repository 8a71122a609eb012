"""The page of a turn, and the tabs Prompt and Raw."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse
from django.utils.html import strip_tags

from sessions.pages.session.past_prompt_rows import HEAD_ROWS, PAGE_ROWS, TAIL_ROWS
from sessions.selectors.past_prompts.outline import outline_at
from tests.api.client import Api
from tests.api.statements import statements
from tests.api.talk import push, request, whole_turn
from tests.markup import one_line
from tests.pages.served import address, compacted_session
from tests.pages.transcripts import make_session, reading_turn
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


def get(client, name, session, *more, **query):
    response = client.get(address(name, session, *more), query)
    assert response.status_code == 200
    return response


@reused
def session(project):
    """Twelve turns, a compaction, and another turn with the compacted prompt."""
    return compacted_session(project)


def test_a_turn_shows_new_input_cost_and_prompt(member_client, project):
    made = make_session(project, [reading_turn(0), reading_turn(1, "A" * 4_000), reading_turn(2)])
    page = get(member_client, "session_turn", made, 1)
    rows = page.context["new_input"].rows
    assert [row.first for row in rows] == [2, 1]  # the output, which is larger, before the call
    assert rows[0].tool == "Read"
    assert "Cache read" in page.text
    assert [line.tokens for line in page.context["cost_lines"]] == [5, 1_000, 1_000, 9]
    assert sum(line.microusd for line in page.context["cost_lines"]) == page.context["turn"].cost_microusd
    assert "Difference from list prices" not in page.text
    assert [row.first for row in page.context["window"].head] == [0, 1, 2]
    assert reverse("session_turn", args=[project.slug, made.pk, 0]) in page.text
    assert reverse("session_turn", args=[project.slug, made.pk, 2]) in page.text
    listed = page.context["turn"].cost_microusd
    made.turns.filter(index=1).update(cost_microusd=listed - 1_000)  # a custom price
    page = one_line(get(member_client, "session_turn", made, 1))
    assert re.search(r"Difference from list prices.*−\$0\.001</data>.*Billed", page)


@pytest.mark.slow
def test_the_largest_new_input_is_listed_first(member_client, project):
    made = make_session(project, [reading_turn(n, "x y z " * (9_000 if n == 5 else 9)) for n in range(9)])
    page = get(member_client, "session_turn", made, 5)
    assert page.context["new_input"].rows[0].voice == "tool"
    assert page.context["new_input"].rows[0].tokens > 9_000


@pytest.mark.parametrize("turn", [12, 99, 2**40])
def test_unknown_turns_are_not_found(member_client, session, turn):
    assert member_client.get(address("session_turn", session, turn)).status_code == 404


@pytest.mark.slow
def test_an_edited_message_is_shown_next_to_its_original(member_client, project):
    session = compacted_session(project, budget=20_000)
    outline = outline_at(session=session, index=12)
    changed = next(e for e in outline.entries if e.rule != "verbatim" and not e.is_generated)
    [edit] = [made.value for made in outline.edits_of(changed)]
    page = get(member_client, "session_past_prompt_entry", session, 12, edit.position).text
    assert "a line of a file" in strip_tags(page)
    assert edit.strategy in page
    assert address("session_compaction", session, 1) in page


def test_evicted_messages_are_one_row_that_opens_them(member_client, session):
    edit = session.edits.get(op="evict")
    page = get(member_client, "session_past_prompt_entry", session, 12, edit.position).text
    assert f'id="message-{edit.position}"' in page


def test_search_reports_whether_hits_were_in_the_prompt(member_client, session):
    page = get(member_client, "session_past_prompt", session, 12, q="f0.py")
    fates = {hit.hit.position: hit.fate for hit in page.context["hits"].hits}
    assert fates
    assert set(fates.values()) <= {"shown", "removed", "collapse", "recency", "supersede", "dedupe", "clip"}
    assert "Back to the prompt" in page.text
    assert "<mark>f0.py</mark>" in page.text


@pytest.mark.slow
def test_removed_hits_link_to_their_compaction(member_client, session, project):
    hits = get(member_client, "session_past_prompt", session, 12, q="f0.py")
    removed = [hit for hit in hits.context["hits"].hits if hit.fate == "removed"]
    edit = session.edits.get(op="evict")
    assert removed
    assert {(hit.changes[-1].compaction, hit.changes[-1].turn) for hit in removed} == {(1, 11)}
    assert all(edit.position <= hit.hit.position <= edit.end for hit in removed)
    assert "Removed after turn 11" in one_line(hits)
    assert edit.reason in hits.text
    assert address("session_compaction", session, 1) in hits.text
    # Nothing was removed before that compaction.
    before = get(member_client, "session_past_prompt", session, 11, q="f0.py").context["hits"].hits
    assert {hit.fate for hit in before} == {"shown"}


@pytest.mark.slow
def test_messages_of_a_row_are_not_displayed_as_notices(member_client, session):
    edit = session.edits.get(op="evict")
    for name, *more in (
        ("session_past_prompt_entry", 12, edit.position),
        ("session_past_prompt_entry", 12, 0),
        ("session_compaction_edit", 1, edit.ordinal),
    ):
        page = get(member_client, name, session, *more).text
        assert 'role="status"' not in page, name
        assert "ShownMessage" not in page, name


def test_show_changes_only(member_client, session):
    rows = get(member_client, "session_past_prompt", session, 12, show="changed").context["window"].head
    assert rows
    assert all(row.is_changed for row in rows)


@pytest.mark.slow
def test_a_long_prompt_shows_both_ends_and_loads_the_rest(member_client, project):
    long = make_session(project, [reading_turn(n) for n in range(200)], name="long")
    window = get(member_client, "session_turn", long, 199).context["window"]
    assert (len(window.head), window.gap.rows, len(window.tail)) == (
        HEAD_ROWS,
        399 - HEAD_ROWS - TAIL_ROWS,
        TAIL_ROWS,
    )
    answer = member_client.get(
        address("session_past_prompt", long, 199), {"after": window.gap.after, "until": window.tail[0].first},
        headers=HTMX,
    )  # fmt: skip
    rest = answer.context["window"]
    assert (len(rest.head), rest.gap.rows) == (PAGE_ROWS, window.gap.rows - PAGE_ROWS)
    assert "<html" not in answer.text
    assert f"until={window.tail[0].first}" in answer.text


@pytest.mark.slow
def test_two_turns_compared(member_client, session):
    page = get(member_client, "session_turn_diff", session, 11, turn=3, view="table")
    assert (page.context["before"].index, page.context["after"].index) == (3, 11)
    assert "Both prompts start with the same" in page.text
    assert address("session_turn", session, 3) in page.text
    texts = get(member_client, "session_turn_diff", session, 11, turn=3)
    assert texts.context["shown_changes"]
    assert "view=table" in texts.text
    for turn, other in ((0, 1), (1, 0), (11, 10)):
        compared = f'{address("session_turn_diff", session, turn)}?turn={other}"'
        assert compared in get(member_client, "session_turn", session, turn).text
    assert get(member_client, "session_turn_diff", session, 5).context["other"] == 4


def test_a_comparison_with_a_missing_turn_says_which_turns_exist(member_client, session):
    last = session.turn_count - 1
    page = get(member_client, "session_turn_diff", session, last, turn=999, view="table")
    assert '<input type="hidden" name="view" value="table">' in page.text
    assert f"Turn 999 does not exist. This session has turns 0 to {last}." in one_line(page)
    for name in ("session_turn", "session_past_prompt", "session_turn_diff"):
        page = member_client.get(address(name, session, 999))
        assert page.status_code == 404
        assert f"Turn 999 does not exist. This session has turns 0 to {last}." in one_line(page)
        assert address("session_turn", session, last) in page.text
    assert "Enter the number of a turn." in one_line(
        get(member_client, "session_turn_diff", session, 5, turn="x")
    )


def test_the_next_prompt(member_client, session):
    page = get(member_client, "session_prompt", session)
    assert page.context["outline"].index == session.turn_count
    assert "What the next call will send" in page.text
    assert sum(size for _, _, size in page.context["components"]) == page.context["outline"].tokens


def test_raw_shows_messages_as_pushed(member_client, session):
    page = get(member_client, "session_raw", session)
    assert [row.position for row in page.context["page"].rows] == list(range(23, -1, -1))
    body = member_client.get(address("session_raw_message", session, 0))
    assert body["Content-Type"] == "application/json"
    assert body.json() == {"role": "user", "content": "Please read the files."}
    laid_out = member_client.get(address("session_raw_message", session, 0), headers=HTMX).text
    assert "&quot;role&quot;: &quot;user&quot;" in laid_out
    assert member_client.get(address("session_raw_message", session, 999)).status_code == 404


@pytest.mark.slow
def test_every_message_has_a_url(member_client, project):
    long = make_session(project, [reading_turn(n) for n in range(60)], name="long")
    shown = get(member_client, "session", long, message=20).context["turns"]
    assert any(m.position == 20 for turn in shown for m in turn.messages)


@pytest.mark.slow
def test_all_tabs_open(member_client, session):
    for tab in get(member_client, "session", session).context["tabs"]:
        page = member_client.get(tab.address)
        assert page.status_code == 200
        assert [other.label for other in page.context["tabs"] if other.is_current] == [tab.label]


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow(member_client, project, django_assert_max_num_queries):
    short = compacted_session(project, turns=8, name="short")
    long = compacted_session(project, turns=40, name="long")
    for session in (short, long):
        last = session.turn_count - 1
        for name, more, most in (
            ("session_turn", (last,), 24),
            ("session_past_prompt", (last,), 14),
            ("session_past_prompt_entry", (last, 2), 14),
            ("session_turn_diff", (last,), 18),
            ("session_prompt", (), 16),
            ("session_raw", (), 8),
        ):
            with django_assert_max_num_queries(most):
                get(member_client, name, session, *more)


@pytest.mark.slow
def test_changed_rows_name_their_compaction_and_the_reason(member_client, project):
    session = compacted_session(project, budget=20_000, name="shortened")
    page = get(member_client, "session_past_prompt", session, 12, show="changed")
    edits = {edit.position: edit for edit in session.edits.filter(op="replace")}
    rows = page.context["window"].head
    assert [row.first for row in rows] == sorted(edits)
    for row in rows:
        [change] = row.changes
        assert (change.compaction, change.turn, change.reason) == (1, 11, edits[row.first].reason)
    link = f'<a href="{address("session_compaction", session, 1)}">compaction 1</a>: '
    assert one_line(page).count(link) == len(rows)
    assert f'title="Compaction 1, after turn 11: {rows[0].changes[0].reason}"' in page.text
    hits = get(member_client, "session_past_prompt", session, 12, q="line of a file").context["hits"].hits
    shortened = [hit for hit in hits if hit.fate not in {"shown", "removed"}]
    assert shortened
    assert {(hit.changes[0].is_removal, hit.changes[0].compaction) for hit in shortened} == {(False, 1)}


@pytest.mark.slow
def test_a_removed_row_names_the_first_and_the_last_compaction(member_client, api_key, project):
    api = Api(api_key)
    api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 6_000}})
    for number in range(30):
        push(api, whole_turn(number))
    session = project.agent_sessions.get(external_id="s1")
    page = get(member_client, "session_past_prompt", session, 29)
    [row] = [row for row in page.context["window"].head if row.is_evicted]
    assert row.since == session.edits.filter(op="evict").earliest("pk").compaction.number
    last = row.changes[0].compaction
    assert row.since < last
    first, other = (address("session_compaction", session, number) for number in (row.since, last))
    text = one_line(page)
    assert (
        f'<a href="{first}">compactions {row.since}</a> to <a href="{other}">{last}</a>, most recently:'
        in text
    )
    # The row counts the messages of all compactions, the comparison and the record those of one.
    diff = get(member_client, "session_compaction_diff", session, last)
    counts = {kind: count for kind, count, *_ in diff.context["counts"]}
    record = session.compactions.get(number=last).record
    assert (counts["evicted"], counts.get("shortened", 0)) == (record["dropped"], record["collapsed"])


@pytest.mark.slow
def test_messages_that_the_client_removed_are_a_row(member_client, api_key, project):
    api = Api(api_key)
    api.post("sessions/", {"id": "s1", "format": "anthropic"})
    history = [each for number in range(4) for each in whole_turn(number, lines=3)]
    for messages in (history, [*history[8:], request("And now?")]):
        assert api.post("sessions/s1/reconcile/", {"messages": messages}).status_code == 200
    session = project.agent_sessions.get(external_id="s1")
    page = get(member_client, "session_past_prompt", session, session.turn_count)
    row, *others = page.context["window"].head
    assert (row.first, row.last, row.rule, row.tokens, row.preview) == (0, 7, "client", 0, "")
    assert [other.first for other in others] == list(range(8, 17))
    assert page.context["outline"].message_count == 9
    assert "removed by the client from its context" in page.text
    assert "Show changes only" in page.text
    opened = get(member_client, "session_past_prompt_entry", session, session.turn_count, 3).text
    assert "Removed without a replacement." in opened
    [hit, *_] = (
        get(member_client, "session_past_prompt", session, session.turn_count, q="handler_0_1")
        .context["hits"]
        .hits
    )
    assert (hit.fate, hit.changes[0].compaction, hit.changes[0].strategy) == ("removed", 1, "client")


@pytest.mark.slow
def test_the_rows_take_the_same_statements_for_any_number_of_compactions(member_client, api_key, project):
    api = Api(api_key)
    api.post("sessions/", {"id": "s1", "budget": {"input_tokens": 6_000}})
    for number in range(40):
        push(api, whole_turn(number))
    session = project.agent_sessions.get(external_id="s1")

    def counts(**query):
        return {
            len(statements(lambda: get(member_client, "session_past_prompt", session, turn, **query)))  # noqa: B023
            for turn in (20, 39)
        }

    assert len(counts()) == 1
    assert len(counts(q="handler_0_7")) == 1
