"""Pages show the working memory that the model sees."""

from __future__ import annotations

import pytest
from django.test import Client

from compaction.memory.origins import Author
from sessions.models import AgentSession
from sessions.selectors.past_prompts.diff import outline_diff
from sessions.selectors.past_prompts.outline import outline_at
from sessions.selectors.past_prompts.rendering import past_prompt_json
from sessions.services.compactions.apply import session_compact
from sessions.services.compactions.revert import compaction_revert
from sessions.services.memory.revisions import Writer, memory_patch
from sessions.store.bodies import json_bytes
from tests.api.client import Api
from tests.api.talk import output, prompt, push, whole_turn
from tests.markup import one_line
from tests.pages.served import address
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db

NOT_YET = "Not in the prompt yet: it is added at the next compaction."


@reused
def stored(api: Api) -> AgentSession:
    api.post("sessions/", {"id": "s1", "policy": {"soft": 0}, "budget": {"input_tokens": 20_000}})
    for number in range(12):
        push(api, whole_turn(number, lines=100))
    session: AgentSession = AgentSession.objects.get(external_id="s1")
    return session


def decide(session: AgentSession, *decisions: str) -> None:
    writer = Writer(author=Author.PERSON)
    memory_patch(session=session, changes={"decisions": list(decisions)}, writer=writer)


def tab(client: Client, session: AgentSession) -> str:
    return one_line(client.get(address("session_memory", session)))


@pytest.mark.slow
def test_the_tab_shows_since_when_the_model_sees_the_memory(
    api: Api, owner_client: Client, stored: AgentSession
) -> None:
    assert NOT_YET not in tab(owner_client, stored)  # no prompt contains one yet
    decide(stored, "use a clock")
    assert NOT_YET in tab(owner_client, stored)
    assert session_compact(session=stored, trigger="user").state == "done"
    assert "In the prompt since turn 11 (revision 1)." in tab(owner_client, stored)
    for number in range(12, 20):
        push(api, whole_turn(number, lines=100))
    stored.refresh_from_db()
    assert session_compact(session=stored, trigger="user").state == "done"
    assert "In the prompt since turn 11 (revision 1)." in tab(owner_client, stored)
    decide(stored, "use the monotonic clock")
    text = tab(owner_client, stored)
    assert "In the prompt since turn 11 (revision 1). Revision 2 replaces it at the next compaction." in text
    push(api, whole_turn(20, lines=200))
    stored.refresh_from_db()
    assert session_compact(session=stored, trigger="user").state == "done"
    assert "In the prompt since turn 20 (revision 2)." in tab(owner_client, stored)
    for number in range(stored.compactions.count(), 0, -1):
        if stored.compactions.get(number=number).state == "done":
            compaction_revert(session=stored, number=number)
    assert NOT_YET in tab(owner_client, stored)


@pytest.mark.slow
def test_the_prompt_view_shows_it(api: Api, owner_client: Client, stored: AgentSession) -> None:
    decide(stored, "use a clock")
    before = outline_at(session=stored, index=12)
    compaction = session_compact(session=stored, trigger="user")
    push(api, whole_turn(12))
    stored.refresh_from_db()
    after = outline_at(session=stored, index=13)
    assert before is not None
    assert after is not None
    assert after.tokens == prompt(api)["tokens"]
    assert outline_diff(before, after).shared == 1
    served = json_bytes(past_prompt_json(session=stored, outline=after)["messages"])
    assert served == json_bytes(prompt(api)["messages"])
    assert b"use a clock" in served
    page = one_line(owner_client.get(address("session_past_prompt", stored, 13)))
    assert "working memory (" in page
    assert "use a clock" in one_line(owner_client.get(address("session_past_prompt_system", stored, 13)))
    edit = compaction.edits.get(op="memory")
    shown = one_line(
        owner_client.get(address("session_compaction_edit", stored, compaction.number, edit.ordinal))
    )
    assert "use a clock" in shown
    assert "In the transcript" not in shown


@pytest.mark.slow
def test_a_memory_that_does_not_fit_is_reported(api: Api, owner_client: Client, stored: AgentSession) -> None:
    decide(stored, "use a clock " * 200)
    stored.budget_tokens = 500
    stored.save(update_fields=["budget_tokens"])
    push(api, [{"role": "user", "content": output(99, 20)}])
    stored.refresh_from_db()
    session_compact(session=stored, trigger="user")
    assert "Not in the prompt: the budget leaves no room for it." in tab(owner_client, stored)
    assert prompt(api)["fits"]
