"""Clients that add messages to a request and leave them out of the next one, such as the current time."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Project
from compaction.sizes.breakdown import TokenBreakdown
from importers.base import ImportedMessage, ImportedSession, ImportedTurn, LogFile
from importers.formats.contextapp import ContextappImporter
from replay.offline.logs import log_transcript
from replay.selectors.transcripts import session_transcript
from sessions.models import AgentSession, Compaction, Message, Webhook, WebhookDelivery, WebhookEvent
from sessions.selectors.past_prompts.outline import outline_at
from sessions.selectors.past_prompts.rendering import past_prompt_json
from sessions.selectors.token_budgets import policy_of
from sessions.selectors.transcripts.export import session_jsonl
from sessions.services.compactions.background import compaction_run
from sessions.services.compactions.lifecycle import compaction_open
from sessions.services.compactions.planning import view_load
from sessions.services.imports.store import session_import
from sessions.services.search.indexing import search_index_run
from sessions.store.bodies import json_bytes
from tests.api.client import Api
from tests.api.talk import answer, assert_valid, call, output, push, request, result
from tests.locking import waiting_for
from tests.markup import one_line

pytestmark = pytest.mark.django_db

JSON = dict[str, Any]


class Agent:
    """A client that keeps `said` and sends `once` only with the next request."""

    def __init__(self, api: Api, session: str, **fields: Any) -> None:
        self.api, self.session = api, session
        self.said: list[JSON] = []
        self.sent: list[list[JSON]] = []
        self.served: list[list[JSON]] = []
        assert api.post("sessions/", {"id": session, "format": "anthropic", **fields}).status_code == 201

    @property
    def row(self) -> AgentSession:
        return AgentSession.objects.get(external_id=self.session)

    def ask(self, new: list[JSON], once: list[JSON], reply: JSON) -> JSON:
        """Send a request, push the reply to it, and return the response to the request."""
        self.said += new
        self.sent.append([*self.said, *once])
        response = self.api.post(f"sessions/{self.session}/reconcile/", {"messages": self.sent[-1]})
        assert response.status_code == 200, response.content
        assert_valid(response)
        found: JSON = response.json()
        self.served.append(found["messages"])
        push(self.api, [reply], self.session)
        self.said.append(reply)
        row = self.row
        assert row.shown_components == TokenBreakdown.of_view(view_load(row).view).tokens
        return found

    def past(self, call: int) -> list[JSON]:
        """Return the prompt of a call from the past. Each call is two turns: its request and its reply."""
        outline = outline_at(session=self.row, index=2 * call + 1)
        assert outline is not None
        prompt: JSON = json.loads(json_bytes(past_prompt_json(session=self.row, outline=outline)))
        return list(prompt["messages"])


def work(agent: Agent, calls: int, seed: int) -> None:
    """Answer requests and use tools, with up to three messages of various sizes that are sent only once."""
    chance = random.Random(seed)
    pending = ""
    for number in range(calls):
        new = [result(pending, output(number, chance.randint(1, 30)))] if pending else []
        new += [] if pending else [request(f"Read file {number}.")]
        count = chance.choice([0, 1, 1, 1, 2, 3])
        once = [request(f"Note {number}.{n}: " + "word " * chance.choice([1, 1, 200])) for n in range(count)]
        pending = f"toolu_{number:05}" if chance.random() < 0.6 else ""
        reply = call(pending, path=f"{number}.py") if pending else answer(f"File {number} is empty.")
        agent.ask(new, once, reply)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_the_prompts_are_those_that_the_client_sent(api: Api, seed: int) -> None:
    agent = Agent(api, "s2", policy={"preset": "off"})
    work(agent, 12, seed)
    assert agent.served == agent.sent
    assert [agent.past(number) for number in range(12)] == agent.sent
    assert (AgentSession.objects.count(), agent.row.compactions.count()) == (1, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_past_prompts_are_those_that_were_served(api: Api, seed: int) -> None:
    agent = Agent(api, "s2", budget={"input_tokens": 3_000})
    work(agent, 40, seed)
    session = agent.row
    assert session.compactions.filter(state="done").count() >= 2
    assert not session.compactions.filter(trigger="client").exists()
    assert [agent.past(number) for number in range(40)] == agent.served
    for messages in agent.served:
        assert sum(str(message["content"]).startswith("Note ") for message in messages) <= 3


@pytest.mark.slow
def test_a_copy_has_the_same_prompts(api: Api, stranger_api: Api) -> None:
    agent = Agent(api, "s2", policy={"preset": "off"})
    exports = []
    for calls in (4, 3):  # the second export marks messages that the first one does not
        work(agent, calls, seed=5)
        exports.append(b"".join(session_jsonl(agent.row)))
    turns = agent.row.turn_count
    for data, state in zip(exports, ("new", "grown"), strict=True):
        assert stranger_api.post("imports/", data).json()["sessions"][0]["state"] == state
    copies = AgentSession.objects.filter(external_id="s2").values_list("omitted_count", "shown_components")
    assert len(set(map(str, copies))) == 1
    for each in (api, stranger_api):
        push(each, [request("And now?")], "s2")
    for turn in range(turns + 1):
        path = f"sessions/s2/prompt/?at_turn={turn}"
        here, there = (each.get(path).json()["messages"] for each in (api, stranger_api))
        assert here == there


def test_a_replay_leaves_them_out(api: Api) -> None:
    agent = Agent(api, "s2", policy={"preset": "off"})
    work(agent, 6, seed=5)
    [imported] = ContextappImporter().read(LogFile(name="s2", data=b"".join(session_jsonl(agent.row))))
    assert isinstance(imported, ImportedSession)
    for transcript in (session_transcript(agent.row), log_transcript(imported)):
        assert set(re.findall(r"Note (\d)", str(transcript.messages))) == {"5"}  # not yet omitted
        answers = [transcript.messages[call.answer].role.value for call in transcript.calls]
        assert answers == ["assistant"] * 6
        assert transcript.size(transcript.calls[-1]) <= sum(message.tokens for message in transcript.messages)


@pytest.mark.slow
def test_omissions_are_no_compactions(api: Api, project: Project, client: Client) -> None:
    Webhook.objects.create(project=project, url="http://hooks.test/", events=list(WebhookEvent.values))
    agent = Agent(api, "s2")
    for number in range(4):
        agent.ask([request(f"Read file {number}.")], [request(f"It is 9:4{number}.")], answer("It is empty."))
    assert api.get("sessions/s2/").json()["compactions"] == 0
    assert api.get("sessions/s2/compactions/").json()["data"] == []
    assert not WebhookDelivery.objects.exists()
    manifest = api.get("sessions/s2/prompt/?manifest=1").json()["manifest"]
    positions = [entry["positions"]["first"] for entry in manifest]
    assert positions == [0, 2, 3, 5, 6, 8, 9, 10, 11]
    after = [len(api.get(f"sessions/s2/prompt/?at_turn={turn}").json()["messages"]) for turn in range(4)]
    assert after == [2, 3, 4, 5]


def test_a_history_without_new_messages_changes_the_prompt_after_the_last_turn_only(api: Api) -> None:
    agent = Agent(api, "s2", policy={"preset": "off"})
    agent.ask([request("Read.")], [request("It is 9:40.")], answer("It is empty."))
    assert len(api.get("sessions/s2/prompt/").json()["messages"]) == 3
    assert agent.ask([], [], answer("Done."))["reconciled"]["status"] == "unchanged"
    assert agent.served == agent.sent
    after = [api.get(f"sessions/s2/prompt/?at_turn={turn}").json()["messages"] for turn in range(3)]
    assert after == [*agent.sent, agent.said]
    assert [agent.past(number) for number in (0, 1)] == [agent.sent[0], agent.said]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_compaction_in_progress_is_applied_after_an_omission(api: Api) -> None:
    agent = Agent(api, "s2", budget={"input_tokens": 8_000})
    work(agent, 12, seed=4)
    row = agent.row
    queued = compaction_open(
        session=row, trigger="user", state=Compaction.State.PENDING, policy=policy_of(row.policy)
    )
    with waiting_for(Message._meta.db_table, lambda: compaction_run(compaction_id=queued.pk)):
        work(agent, 3, seed=4)
    queued.refresh_from_db()
    assert (queued.state, agent.row.omitted_count > row.omitted_count) == (Compaction.State.DONE, True)
    agent.ask([request("And now?")], [], answer())
    assert "Note " not in json.dumps(agent.served[-1])


@pytest.mark.slow
def test_a_fork_has_no_message_that_the_client_omitted(api: Api) -> None:
    agent = Agent(api, "s2")
    for number in range(4):
        agent.ask([request(f"Read {number}.")], [request(f"It is 9:4{number}.")], answer("It is empty."))
    sent = [*agent.said[:6], request("Go on.")]
    served = api.post("sessions/s2/reconcile/", {"messages": sent}).json()
    assert served["reconciled"]["status"] == "forked"
    assert served["messages"] == sent
    fork = AgentSession.objects.get(parent__external_id="s2")
    assert (fork.omitted_count, fork.compaction_count) == (3, 0)
    assert fork.context_components == TokenBreakdown.of_view(view_load(fork).view).tokens


@pytest.mark.slow
def test_search_and_pages_name_the_client_that_omitted_a_message(
    api: Api, project: Project, member_client: Client
) -> None:
    agent = Agent(api, "s2")
    for number in range(3):
        agent.ask([request(f"Read file {number}.")], [request(f"It is 9:4{number}.")], answer("It is empty."))
    search_index_run()
    found = api.get("sessions/s2/search/?q=%229:41%22").json()["data"]
    [change] = found[0]["changes"]
    assert (found[0]["position"], found[0]["in_prompt"]) == (4, "evicted")
    assert (change["effect"], change["compaction"], change["turn"]) == ("evicted", None, 3)
    page = member_client.get(reverse("session_past_prompt", args=[project.slug, agent.row.pk, 5]))
    assert "removed by the client from its context" in one_line(page)
    entry = member_client.get(reverse("session_past_prompt_entry", args=[project.slug, agent.row.pk, 5, 4]))
    assert "It is 9:41." in one_line(entry)
    assert "Removed without a replacement." in one_line(entry)


def test_an_import_does_not_bring_back_a_message_that_the_client_omitted(api: Api, project: Project) -> None:
    messages = [request("Read."), request("It is 9:40."), answer("It is empty."), request("Go on.")]

    def read(count: int) -> None:
        turns = [
            ImportedTurn(messages=[ImportedMessage(body=message, source_id=str(number))])
            for number, message in enumerate(messages[:count])
        ]
        log = ImportedSession(external_id="log", format="anthropic", agent="tests", turns=turns)
        session_import(project=project, imported=log)

    read(3)
    kept = [messages[0], messages[2]]
    assert api.post("sessions/log/reconcile/", {"messages": kept}).json()["messages"] == kept
    read(4)
    session = AgentSession.objects.get()
    assert api.get("sessions/log/prompt/").json()["messages"] == [*kept, messages[3]]
    assert session.shown_components == TokenBreakdown.of_view(view_load(session).view).tokens
