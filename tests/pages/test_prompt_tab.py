"""The Prompt tab and the API agree on what the next call sends."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from compaction.messages import Usage
from importers.base import ClientCompaction
from sessions.models import AgentSession
from sessions.selectors.past_prompts.changes import prompts_around
from sessions.services.compactions.apply import session_compact
from sessions.services.compactions.recap_edit import recap_edit
from tests.pages.served import compacted_session
from tests.pages.transcripts import make_session, message, reading_turn, turn

pytestmark = pytest.mark.django_db


@pytest.fixture
def compacted_by_client(project):
    summary = turn(
        20,
        [message("user", "This is what was done.", "summary"), message("assistant", "Going on.", "answer")],
        usage=Usage(uncached_tokens=900, output_tokens=9),
        compaction=ClientCompaction(trigger="auto", tokens_before=150_000),
    )
    first = [reading_turn(index, "line of text\n" * 300) for index in range(20)]
    second = [reading_turn(index, "line of text\n" * 300) for index in range(21, 40)]
    return make_session(project, [*first, summary, *second])


def prompt_tab(client, session):
    return client.get(reverse("session_prompt", args=[session.project.slug, session.pk]))


def test_the_tab_shows_the_prompt_that_the_api_serves(member_client, api_key, client, compacted_by_client):
    session = compacted_by_client
    served = client.get(
        f"/api/v1/sessions/{session.external_id}/prompt/", headers={"Authorization": f"Bearer {api_key}"}
    ).json()
    page = prompt_tab(member_client, session)
    assert page.context["outline"].tokens == served["tokens"] == page.context["components_total"]
    assert served["occupancy"] == round(page.context["provider_tokens"] / served["budget"], 4)
    assert "no longer sent messages 0–39" in page.text
    widths = re.findall(r'<rect class="component-\w+" x="[\d.]+" width="([\d.]+)"', page.text)
    assert len(widths) == len(page.context["components"]) > 1
    assert sum(map(float, widths)) == pytest.approx(100, abs=0.1)


@pytest.mark.slow
def test_the_tab_shows_the_edits_of_a_compaction(member_client, compacted_by_client):
    session_compact(session=compacted_by_client, trigger="user")
    page = prompt_tab(member_client, AgentSession.objects.get(pk=compacted_by_client.pk))
    assert set(page.context["counts"]) > {"verbatim"}


@pytest.mark.slow
def test_compactions_after_a_fetch_change_the_next_prompt(member_client, api_key, client, project):
    session, headers = compacted_session(project), {"Authorization": f"Bearer {api_key}"}
    url = f"/api/v1/sessions/{session.external_id}/prompt/"
    client.get(url, headers=headers)  # the agent is waiting for the model
    first = recap_edit(session=session, number=1, text="## Decisions\n- the tests stay")
    second = recap_edit(
        session=session, number=2, text="## Decisions\n- the tests stay, and the docs as well"
    )
    page = prompt_tab(member_client, session)
    assert page.context["outline"].tokens == client.get(url, headers=headers).json()["tokens"]
    before, after = prompts_around(
        session=AgentSession.objects.get(pk=session.pk), row=session.compactions.get(number=3)
    )
    assert (before.tokens, after.tokens) == (first.tokens_after, second.tokens_after)


def test_the_tab_explains_a_prompt_that_does_not_fit(member_client, api_key, client, project):
    session = make_session(project, [reading_turn(0, "line of text\n" * 300)])
    AgentSession.objects.filter(pk=session.pk).update(budget_tokens=50)
    served = client.get(
        f"/api/v1/sessions/{session.external_id}/prompt/", headers={"Authorization": f"Bearer {api_key}"}
    ).json()
    assert served["fits"] is False
    page = prompt_tab(member_client, session).text
    assert "This prompt does not fit." in page
    assert served["reason"] in page
    AgentSession.objects.filter(pk=session.pk).update(budget_tokens=50_000)
    assert "does not fit" not in prompt_tab(member_client, session).text
