"""The page of one compaction."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.utils.html import strip_tags

from compaction.sizes.breakdown import TokenBreakdown
from compaction.strategies import STRATEGIES
from sessions.models import Compaction, Recap
from sessions.selectors.charts.jumps import largest_jumps
from sessions.services.compactions.apply import session_compact
from sessions.services.compactions.revert import compaction_revert
from tests.api.client import Api
from tests.api.talk import push, whole_turn
from tests.markup import one_line
from tests.pages.served import address, compacted_session
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db


@reused
def session(project):
    return compacted_session(project)


def page_of(client, session, number=1):
    response = client.get(address("session_compaction", session, number))
    assert response.status_code == 200
    return response


def test_a_failed_compaction_shows_its_reason(member_client, viewer_client, session, monkeypatch):
    def fail(view, context):
        raise RecursionError

    monkeypatch.setitem(STRATEGIES, "clip", replace(STRATEGIES["clip"], run=fail))
    Compaction.objects.all().delete()
    member_client.post(address("session_compact", session))
    row = Compaction.objects.get(state="failed")
    page = page_of(viewer_client, session, row.number).text
    [reason] = re.findall(r"This compaction failed and did not change the prompt.</b> ([^<]+)</p>", page)
    assert reason.startswith("Planning failed (RecursionError)")
    assert reason.endswith("server log.")
    assert "No edits." not in page


def test_it_shows_reason_trigger_and_edits(viewer_client, session):
    row = session.compactions.get()
    page = page_of(viewer_client, session)
    for text in ("Asked for by a test", "user", f'title="{row.tokens_before:,} tokens"', "Re-cached tokens"):
        assert text in page.text
    assert len(page.context["detail"].edits) == row.edits.count() > 0
    assert "Revert compaction" not in page.text
    assert "of these tokens were new" in page.text


def test_the_budget_is_in_the_same_tokens_as_the_prompt(viewer_client, session):
    row = session.compactions.get()
    row.record |= {"budget": 10_000, "calibration": 1.25, "overhead": 3_000}
    row.save(update_fields=row.RECORD)
    text = strip_tags(one_line(page_of(viewer_client, session)))
    assert "The budget of 10k corresponds to 15.5k provider tokens." in text
    row.record |= {"calibration": 1.0, "overhead": 0}
    row.save(update_fields=row.RECORD)
    assert "provider tokens" not in page_of(viewer_client, session).text


def test_by_component_before_and_after_add_up(viewer_client, session):
    row = session.compactions.get()
    changes = page_of(viewer_client, session).context["components"]
    assert sum(change.before for change in changes) == row.tokens_before
    assert sum(change.after for change in changes) == row.tokens_after
    assert sum(change.after for change in changes) == TokenBreakdown(tokens=session.shown_components).total


@pytest.mark.slow
def test_each_edit_opens_its_original(viewer_client, session):
    edits = session.edits.all()
    assert edits
    for edit in edits:
        target = address("session_compaction_edit", session, 1, edit.ordinal)
        assert target in page_of(viewer_client, session).text
        page = viewer_client.get(target, headers={"HX-Request": "true"})
        assert "<html" not in page.text
        assert f'id="message-{edit.position}"' in page.text


def test_the_recap_names_its_sources(viewer_client, session):
    page = page_of(viewer_client, session)
    sources = [place for _, items in page.context["sections"] for _, places in items for place in places]
    assert sources
    assert f"?message={sources[0]}#message-{sources[0]}" in page.text


@pytest.mark.parametrize("is_needed", [True, False])
def test_the_page_shows_what_was_removed_and_whether_a_summary_was_needed(viewer_client, session, is_needed):
    row = session.compactions.get()
    row.record |= {"summarizer_needed": is_needed, "dropped": 1_200}
    row.save()
    assert "1,200 messages removed" in one_line(page_of(viewer_client, session))
    shown = one_line(page_of(viewer_client, session)).split("Recap needed</span>")[1].split("</li>")[0]
    assert (">yes<" in shown, ">no<" in shown) == (is_needed, not is_needed)


@pytest.mark.parametrize(
    ("trigger", "notes", "reason"),
    [
        ("soft", {"fallback": "SummaryUnavailable: it is overloaded"}, "it is overloaded"),
        ("hard", {}, "the hard trigger compacts immediately and does not wait for a model"),
        ("soft", {"summary": {}, "summary_used": False}, "the prompt changed while the model was running"),
        ("soft", {"summary": {}, "summary_used": True}, None),
    ],
)
def test_the_pages_show_why_no_model_wrote_the_recap(
    viewer_client, session, settings, trigger, notes, reason
):
    row = session.compactions.get()
    row.trigger, row.record = trigger, {**row.record, **notes}
    row.save()
    page = one_line(page_of(viewer_client, session))
    assert f"No model wrote this recap: {reason}." in page if reason else "No model wrote" not in page
    tab = address("session_compactions", session)
    assert "no model wrote" not in one_line(viewer_client.get(tab))  # none is expected
    settings.CONTEXTAPP_ANTHROPIC_API_KEY = "a key"
    listed = one_line(viewer_client.get(tab))
    assert f"no model wrote the recap: {reason}" in listed if reason else "no model wrote" not in listed


@pytest.mark.slow
def test_a_requested_compaction_records_why_no_model_was_called(member_client, project):
    session = compacted_session(project)
    session.compactions.all().delete()
    member_client.post(address("session_compact", session))
    [row] = session.compactions.all()
    assert "recap" in row.record["strategies"]
    assert row.record["fallback"] == "the server has no Anthropic API key"
    shown = one_line(page_of(member_client, session))
    assert "No model wrote this recap: the server has no Anthropic API key." in shown


def test_changes_to_the_head_and_tail_are_explained(viewer_client, session):
    row = session.compactions.get()
    assert row.record["exceptions"] == []
    assert "were left unchanged. Only the " in one_line(page_of(viewer_client, session))
    reason = "thinking that the provider rejects after an edit of the prompt before it"
    exception = {"part": "tail", "step": "clear_thinking", "reason": reason, "messages": 3}
    first = exception | {"part": "head", "messages": 1}
    row.record |= {"exceptions": [exception, first], "tail_verbatim": False, "tail_bound": "messages"}
    row.save()
    page = page_of(viewer_client, session)
    text = one_line(page)
    assert "were left unchanged, except:" in text
    assert "3 of the newest messages:" in text
    assert "1 of the first messages:" in text
    assert reason in text
    assert "minimum number of messages" in page.context["tail_rule"]
    assert page.context["tail_rule"] in text


def test_break_even(viewer_client, session):
    row = session.compactions.get()
    row.record |= {"break_even_turns": 2.4}
    row.turn_index = 5
    row.save()
    payback = page_of(viewer_client, session).context["detail"].payback
    assert (payback.calls_needed, payback.calls_run, payback.is_reached) == (3, 6, True)
    row.cost_microusd = 6_000  # two calls read 20,000 tokens for it
    row.record |= {"tokens_saved": 8_000, "calibration": 1.25}
    row.session.model = "claude-sonnet-4-5"
    row.session.save()
    row.save()
    payback = page_of(viewer_client, session).context["detail"].payback
    assert (payback.calls_needed, payback.is_reached) == (5, True)
    assert payback.microusd == 4_800  # six calls at $0.003, minus 2.4 for re-caching and $0.006 for the recap
    assert "Net savings in these prompts: $0.0048" in strip_tags(one_line(page_of(viewer_client, session)))
    row.state, row.reverted_turn = Compaction.State.REVERTED, 6
    row.save()
    payback = page_of(viewer_client, session).context["detail"].payback
    assert (payback.calls_run, payback.is_reached, payback.microusd) == (1, False, -10_200)
    assert "Net savings in these prompts: −$0.0102" in strip_tags(one_line(page_of(viewer_client, session)))


def test_later_references_are_listed(viewer_client, session):
    edit = session.edits.earliest("ordinal")
    assert "Nothing removed here has been referenced since" in page_of(viewer_client, session).text
    edit.referenced_turn, edit.referenced_text = 11, "f3.py"
    edit.save()
    assert "<code>f3.py</code>" in page_of(viewer_client, session).text


def test_records_without_components_are_displayed(viewer_client, session):
    row = session.compactions.get()
    row.record = {name: value for name, value in row.record.items() if name != "components"}
    row.save()
    assert "an earlier version recorded it" in one_line(page_of(viewer_client, session))


@pytest.mark.parametrize("state", ["pending", "running", "skipped", "failed"])
def test_unfinished_compactions_have_a_page(viewer_client, session, state):
    session.compactions.create(number=2, state=state, trigger="soft", turn_index=11, snapshot_position=24)
    page = page_of(viewer_client, session, 2)
    assert ("every 3s" in page.text) == (state in {"pending", "running"})


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("session_compaction", [7]),
        ("session_compaction", [2**40]),
        ("session_compaction_edit", [1, 999]),
        ("session_recap", [7]),
    ],
)
def test_unknown_compactions_and_edits_are_not_found(viewer_client, session, name, more):
    assert viewer_client.get(address(name, session, *more)).status_code == 404


@pytest.mark.slow
def test_a_member_edits_the_recap(member_client, viewer_client, session, project):
    row = session.compactions.get()
    assert Recap.objects.filter(compaction=row).exists()
    target = address("session_recap", session, row.number)
    assert "readonly" in viewer_client.get(target).text
    assert member_client.post(target, {"text": " "}).status_code == 422
    answer = member_client.post(target, {"text": "## Decisions\n- Keep f1.py as it is."})
    assert answer.url == address("session_compaction", session, row.number + 1)
    page = page_of(member_client, session, row.number + 1)
    assert "Keep f1.py as it is." in page.text
    assert "a person" in page.text
    # The prompt no longer contains the first version.
    assert "Edit recap" in page.text
    assert "Edit recap" not in page_of(member_client, session, row.number).text
    shown = member_client.get(target).text
    assert "cannot be edited" in shown
    assert "Begin sections with" not in shown
    assert project.audit_events.filter(action="recap.edited").exists()


def test_older_compactions_are_paged(viewer_client, session):
    for number in range(2, 30):
        session.compactions.create(number=number, state="skipped", trigger="soft", turn_index=11,
                                   snapshot_position=24)  # fmt: skip
    first = viewer_client.get(address("session_compactions", session))
    assert first.context["compactions"].before == 10
    older = viewer_client.get(address("session_compactions", session), {"before": 10})
    assert [row.number for row in older.context["compactions"].rows] == list(range(9, 0, -1))


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow(viewer_client, project, django_assert_max_num_queries):
    for turns, name in ((8, "short"), (40, "long")):
        session = compacted_session(project, turns=turns, name=name)
        with django_assert_max_num_queries(14):
            page_of(viewer_client, session)


@pytest.mark.slow
def test_an_increase_after_a_revert_names_the_compaction(member_client, project, api_key):
    api = Api(api_key)
    api.post("sessions/", {"id": "s1", "policy": {"soft": 0, "hard": 0}, "budget": {"input_tokens": 3_000}})
    for number in range(12):
        push(api, whole_turn(number))
    session = project.agent_sessions.get()
    session_compact(session=session, trigger="user")
    push(api, whole_turn(12))
    compaction_revert(session=session, number=1)
    push(api, whole_turn(13))
    [restored] = [jump for jump in largest_jumps(session=session) if jump.reverted]
    assert (restored.turn, restored.reverted) == (13, [1])
    page = one_line(member_client.get(address("session", session)))
    assert f'reverted: <a href="{address("session_compaction", session, 1)}">compaction 1</a>' in page


def test_a_compaction_that_restores_tools_shows_what_it_added(viewer_client, session):
    row = session.compactions.get()
    row.record |= {"tokens_saved": -1_140, "middle_tokens": 0}
    row.save(update_fields=row.RECORD)
    text = strip_tags(one_line(page_of(viewer_client, session)))
    assert "Added 1.14k tokens" in " ".join(text.split())
    assert "could be edited" not in text
