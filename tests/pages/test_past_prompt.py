"""Past prompts: rebuilt from messages and edits, and equal to the prompts that were served."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from django.urls import reverse

from compaction.edits import Op
from importers.base import ClientCompaction
from sessions.models import AgentSession
from sessions.pages.session import compactions, past_prompt_rows
from sessions.pages.session.past_prompt_rows import opening_window
from sessions.selectors.past_prompts import outline
from sessions.selectors.past_prompts.contents import entry_contents
from sessions.selectors.past_prompts.diff import outline_diff
from sessions.selectors.past_prompts.outline import outline_at
from sessions.selectors.past_prompts.rendering import past_prompt_json
from sessions.services.compactions.revert import compaction_revert
from sessions.store.bodies import json_bytes
from tests.api.client import Api
from tests.api.talk import assert_valid, openai_turn, prompt, push, whole_turn
from tests.markup import one_line
from tests.pages.served import address, compacted_session
from tests.pages.transcripts import make_session, message, reading_turn, turn

pytestmark = pytest.mark.django_db


@pytest.fixture(params=[whole_turn, openai_turn])
def served(request: Any, api_key: str, project: Any) -> AgentSession:
    """Twenty requests with a budget for about ten; each question is pushed as a separate turn."""
    api = Api(api_key)
    format = "openai" if request.param is openai_turn else "anthropic"
    session = {"id": "s1", "format": format, "model": "claude-sonnet-4-5", "budget": {"input_tokens": 6_000}}
    api.post("sessions/", {**session, "system": "Be brief.", "tools": []})
    for number in range(20):
        question, *rest = request.param(number)
        push(api, [question])
        push(api, rest)
    made: AgentSession = project.agent_sessions.get(external_id="s1")
    assert made.compaction_count > 1
    return made


@pytest.mark.slow
def test_outlines_are_as_large_as_the_served_prompts(served):
    sizes = {t.index: t.prompt_served for t in served.turns.all()}
    assert {n: outline_at(session=served, index=n).tokens for n in sizes} == sizes


def test_the_next_prompt_equals_a_fetched_prompt(served, api_key):
    now = outline_at(session=served, index=served.turn_count)
    fetched = prompt(Api(api_key))
    assert now.turn is None
    assert now.tokens == fetched["tokens"]
    assert json_bytes(past_prompt_json(session=served, outline=now)) == json_bytes(
        {name: fetched[name] for name in ("system", "messages", "tools") if name in fetched}
    )


@pytest.mark.slow
def test_past_prompts_equal_the_prompts_fetched_then(served, api_key):
    """The prompt of a call is the one after the previous turn plus the new input of the turn."""
    for index in range(1, served.turn_count, 2):  # turns whose call had no new input
        outline = outline_at(session=served, index=index)
        fetched = prompt(Api(api_key), f"?at_turn={index - 1}")
        seen = past_prompt_json(session=served, outline=outline)
        assert json_bytes(seen["messages"]) == json_bytes(fetched["messages"])


def test_a_revert_applies_from_its_turn_on(project, django_assert_num_queries):
    session = compacted_session(project)
    changed = [e for e in outline_at(session=session, index=12).entries if e.rule != "verbatim"]
    assert changed
    compaction_revert(session=session, number=1)
    assert all(e.rule == "verbatim" for e in outline_at(session=session, index=12).entries)
    session.refresh_from_db()
    with django_assert_num_queries(6):
        outline = outline_at(session=session, index=12)
        entry_contents(session=session, outline=outline, entries=outline.entries)


def test_a_compaction_by_the_client_drops_earlier_messages(project, member_client, monkeypatch):
    summary = message("user", "What happened so far.", "u3", is_summary=True)
    compacted = turn(3, [summary, message("assistant", "On.", "a3")],
                     compaction=ClientCompaction(trigger="auto", tokens_before=9_000))  # fmt: skip
    session = make_session(project, [*(reading_turn(n) for n in range(3)), compacted])
    assert [e.first for e in outline_at(session=session, index=2).entries] == [0, 1, 2, 3, 4]
    after = outline_at(session=session, index=3)
    assert [e.first for e in after.entries] == [6]
    assert after.tokens == session.turns.get(index=3).prompt_estimate
    page = one_line(member_client.get(address("session_compactions", session)))
    assert "No compactions by contextapp yet." in page
    assert 'Before turn 3</a>, at <data value="9000"' in page
    assert "are listed" not in page
    monkeypatch.setattr(compactions, "_BY_CLIENT", 1)
    session.turns.filter(index=2).update(client_compaction={"trigger": "manual"})
    page = one_line(member_client.get(address("session_compactions", session)))
    assert "Before turn 2" not in page
    assert "Only the newest 1 are listed." in page


@pytest.mark.parametrize("index", [-1, 21, 10**9])
def test_unknown_turns_have_no_outline(project, index):
    assert outline_at(session=make_session(project), index=index) is None


def test_the_difference_of_two_turns(project):
    session = compacted_session(project)
    before, after = (outline_at(session=session, index=n) for n in (11, 12))
    difference = outline_diff(before, after)
    assert difference.shared >= 1
    kinds = {change.kind for change in difference.changes}
    assert "new" in kinds
    removed = [change for change in difference.changes if change.kind == "removed"]
    evicted = session.edits.filter(op=Op.EVICT).exists()
    assert bool(removed) == evicted
    assert outline_diff(after, after).changes == []
    # Without a compaction the prompt only grows at its end.
    growing = outline_diff(*(outline_at(session=session, index=n) for n in (4, 5)))
    assert {change.kind for change in growing.changes} == {"new"}
    assert growing.shared == len(outline_at(session=session, index=4).entries)


@pytest.mark.slow
def test_prompts_of_long_sessions_are_the_same(project, monkeypatch):
    """The end of a prompt without edits is not loaded in long sessions."""
    session = compacted_session(project)

    def figures():
        outlines = [outline_at(session=session, index=n) for n in range(session.turn_count + 1)]
        differences = [outline_diff(one, other) for one, other in pairwise(outlines)]
        sizes = [
            (each.tokens, each.message_count, [*each.entries, *(each.run or ())], each.entry_at(each.end - 1))
            for each in outlines
        ]
        changed = [(d.shared, d.shared_tokens, sum(c.tokens_after for c in d.changes)) for d in differences]
        windows = [opening_window(session, each, new_from=each.end - 2) for each in outlines]
        return sizes, changed, windows

    monkeypatch.setattr(past_prompt_rows, "HEAD_ROWS", 3)
    monkeypatch.setattr(past_prompt_rows, "TAIL_ROWS", 3)
    short = figures()
    monkeypatch.setattr(outline, "LONG", 0)
    monkeypatch.setattr(outline, "_HEAD", 2)
    assert any(outline_at(session=session, index=n).run for n in range(session.turn_count))
    assert figures() == short


@pytest.mark.slow
def test_a_prompt_that_is_too_long_for_json_links_to_the_messages(project, member_client, monkeypatch):
    session = compacted_session(project)
    monkeypatch.setattr(outline, "MOST_IN_JSON", 2)
    assert member_client.get(address("session_past_prompt_json", session, 5)).status_code == 404
    page = member_client.get(address("session_turn", session, 5)).content.decode()
    assert "too long to be shown as JSON" in page
    assert reverse("session_export", args=[project.slug, session.pk, "jsonl"]) in page
    assert address("session_past_prompt_json", session, 5) not in page


@pytest.mark.slow
def test_the_json_is_valid_for_the_provider(served, member_client):
    for index in (0, 7, 20, 39, 40):
        response = member_client.get(address("session_past_prompt_json", served, index))
        body = response.json() | {"format": served.format}
        response.json = lambda body=body: body
        if index % 2 or index == 40:
            assert_valid(response)
