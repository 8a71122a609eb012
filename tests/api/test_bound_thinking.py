"""Models that bind thinking to the prompt: no prompt contains thinking from another prompt (rule A11)."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions.models import AgentSession, Compaction
from sessions.services.compactions.apply import session_compact
from sessions.services.compactions.revert import NotReappliable, compaction_reapply
from tests.api.client import Api
from tests.api.talk import answer, call, output, prompt, push, request, result
from tests.plugins.examples import examples
from tests.plugins.reused import reused

MODEL = "claude-opus-5-5"

RECAP = "## Decisions\n- keep the files"

JSON = dict[str, Any]

pytestmark = pytest.mark.django_db


def signature(served: JSON, messages: list[JSON]) -> str:
    """Return what the provider binds thinking to: system, tools and the messages before it."""
    prefix = [served.get("system"), served.get("tools"), messages]
    return hashlib.sha256(json.dumps(prefix, sort_keys=True).encode()).hexdigest()


def prose(number: int) -> str:
    return " ".join(f"Parcel {number}-{line} goes to zone {line % 7}." for line in range(40))


class Agent:
    """An agent that thinks: it fetches the prompt, and pushes the model's answer and the tool's output."""

    def __init__(self, api: Api, session: str = "s1") -> None:
        self.api, self.session, self.number = api, session, 0

    def start(self) -> None:
        push(self.api, [request("Read all the files.")], session=self.session)

    def fetch(self) -> JSON:
        """Fetch the prompt, whose thinking the provider must accept."""
        served = prompt(self.api, session=self.session)
        messages = served["messages"]
        for index, message in enumerate(messages):
            for block in message["content"] if isinstance(message["content"], list) else ():
                if block["type"] == "thinking":
                    bound = signature(served, messages[:index])
                    assert block["signature"] == bound, f"thinking in message {index} is rejected"
        return served

    def work(self, turns: int = 1, *, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Push turns. `meanwhile` runs while the model writes its answer."""
        for _ in range(turns):
            served = self.fetch()
            meanwhile()
            name = f"toolu_{self.number:03}"
            answered = call(name, path=f"src/file_{self.number}.py"), result(name, output(self.number))
            if self.number % 2:
                answered = answer(prose(self.number)), request(f"Go on with {self.number}.")
            thinking = {"type": "thinking", "thinking": f"File {self.number} is next."}
            thinking["signature"] = signature(served, served["messages"])
            answered[0]["content"].insert(0, thinking)
            push(self.api, list(answered), session=self.session)
            self.number += 1
        self.fetch()

    def thoughts(self) -> int:
        """Return how many thinking blocks the prompt contains."""
        return json.dumps(self.fetch()["messages"]).count('"thinking":')

    def compact(self) -> JSON:
        done: JSON = self.api.post(f"sessions/{self.session}/compact/", {}).json()
        assert done["state"] == "done", done
        return done

    def revert(self, number: int) -> None:
        response = self.api.post(f"sessions/{self.session}/compactions/{number}/revert/")
        assert response.status_code == 200, response.content

    def reapply(self, number: int) -> None:
        compaction_reapply(session=AgentSession.objects.get(external_id=self.session), number=number)


@reused
def agent(api: Api) -> Agent:
    fields = {"id": "s1", "format": "anthropic", "model": MODEL, "budget": {"input_tokens": 9_000}}
    policy = {"soft": 0, "tail_share": 0.2, "target": 0.3}
    assert api.post("sessions/", {**fields, "policy": policy}).status_code == 201
    agent = Agent(api)
    agent.start()
    agent.work(4)
    return agent


def test_a_compaction_removes_earlier_thinking_and_keeps_later(agent: Agent) -> None:
    agent.compact()
    kept = agent.thoughts()
    assert kept < 4
    agent.work(3)
    assert agent.thoughts() == kept + 3


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["balanced", "aggressive", "masking", "baseline"])
def test_every_policy_removes_it(agent: Agent, preset: str) -> None:
    agent.api.patch("sessions/s1/", {"policy": {"preset": preset, "soft": 0}})
    agent.work(20)
    assert AgentSession.objects.get().compaction_count


@pytest.mark.slow
def test_a_revert_removes_thinking_that_followed_the_compaction(agent: Agent) -> None:
    agent.compact()
    agent.work(2)
    agent.revert(1)
    cleared = agent.api.get("sessions/s1/compactions/2/").json()
    assert (cleared["trigger"], cleared["reason"]) == ("thinking", "compaction 1 was reverted")
    assert [step["name"] for step in cleared["record"]["steps"]] == ["clear_thinking"]
    assert "handler_0_39" in json.dumps(agent.fetch())
    agent.work(2)
    assert agent.thoughts() >= 2


@pytest.mark.slow
def test_a_reverted_compaction_can_be_applied_again(agent: Agent) -> None:
    agent.compact()
    agent.work(2)
    agent.revert(1)
    agent.work(2)
    agent.reapply(1)
    assert "handler_0_39" not in json.dumps(agent.fetch())
    agent.work(2)


@pytest.mark.slow
def test_an_edited_recap_removes_thinking_that_followed_the_old_one(agent: Agent) -> None:
    agent.work(8)
    agent.compact()
    agent.work(2)
    compaction = Compaction.objects.filter(recaps__isnull=False).latest("number")
    address = f"sessions/s1/compactions/{compaction.number}/recap/"
    response = agent.api.post(address, {"text": RECAP})
    assert response.status_code == 200, response.content
    agent.work(2)
    agent.revert(response.json()["number"])
    agent.work(2)


def test_a_late_result_removes_the_thinking_that_was_written_without_it(agent: Agent) -> None:
    push(agent.api, [call("toolu_late", path="a.py"), request("Go on without it.")])
    kept = agent.thoughts()
    agent.work(1)
    assert agent.thoughts() == kept + 1
    push(agent.api, [result("toolu_late", "def late(): ...")])
    assert agent.thoughts() == kept
    agent.work(2)
    assert agent.thoughts() == kept + 2


def test_a_new_system_prompt_removes_all_thinking(agent: Agent) -> None:
    push(agent.api, [request("Stay.")], system="Read files.")
    assert agent.thoughts() == 0
    agent.work(2)
    push(agent.api, [request("Stay.")], system="Read files.")
    assert agent.thoughts() == 2
    push(agent.api, [request("Write files now.")], system="Write files.")
    assert agent.thoughts() == 0
    assert [row.trigger for row in Compaction.objects.all()] == ["thinking", "thinking"]


@pytest.mark.slow
@pytest.mark.parametrize("change", ["compact", "revert", "reapply"])
def test_a_change_while_the_model_answers_removes_the_thinking_of_that_answer(
    agent: Agent, change: str
) -> None:
    if change != "compact":
        agent.compact()
        agent.work(1)
    if change == "reapply":
        agent.revert(1)
        agent.work(1)
    action = agent.compact if change == "compact" else lambda: getattr(agent, change)(1)
    agent.work(1, meanwhile=action)
    agent.work(2)
    assert agent.thoughts() >= 2


_ACTIONS = st.sampled_from(["work", "system", "compact", "revert", "reapply", "recap", "memory", "force"])


@pytest.mark.slow
@settings(max_examples=examples(10), suppress_health_check=list(HealthCheck))
@given(actions=st.lists(st.tuples(_ACTIONS, st.booleans(), st.integers(0, 5)), max_size=12))
def test_any_order_of_changes(api: Api, actions: list[tuple[str, bool, int]]) -> None:
    name = f"s{AgentSession.objects.count()}"
    fields = {"id": name, "format": "anthropic", "model": MODEL, "budget": {"input_tokens": 6_000}}
    api.post("sessions/", {**fields, "policy": {"soft": 0, "tail_share": 0.2, "target": 0.3}})
    agent = Agent(api, name)
    agent.start()
    agent.work(5)
    for action, is_meanwhile, number in actions:
        run = _run(agent, action, number)
        if is_meanwhile and action not in {"work", "system"}:
            agent.work(1, meanwhile=run)
        else:
            run()
            agent.fetch()


def _run(agent: Agent, action: str, number: int) -> Callable[[], object]:
    base = f"sessions/{agent.session}"
    return {
        "work": agent.work,
        "system": lambda: push(agent.api, [request("Go on.")], session=agent.session, system=f"Be {number}."),
        "compact": lambda: agent.api.post(f"{base}/compact/", {}),
        "revert": lambda: agent.api.post(f"{base}/compactions/{number}/revert/"),
        "reapply": lambda: _reapply_if_possible(agent, number),
        "recap": lambda: agent.api.post(f"{base}/compactions/{number}/recap/", {"text": RECAP}),
        "memory": lambda: agent.api.patch(f"{base}/memory/", {"task": f"Task {number}."}),
        "force": lambda: session_compact(
            session=AgentSession.objects.get(external_id=agent.session), trigger="hard"
        ),
    }[action]


def _reapply_if_possible(agent: Agent, number: int) -> None:
    with suppress(NotReappliable):
        agent.reapply(number)


class Client(Agent):
    """An agent that sends its whole history with each call."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.history: list[JSON] = [request("Read all the files.")]

    def send(self, **fields: Any) -> JSON:
        response = self.api.post(f"sessions/{self.session}/reconcile/", {"messages": self.history, **fields})
        assert response.status_code == 200, response.content
        found: JSON = response.json()
        return found

    def answer(self, served: JSON) -> None:
        thinking = {"type": "thinking", "thinking": f"File {self.number} is next."}
        thinking["signature"] = signature(served, served["messages"])
        called = call(f"toolu_{self.number:03}", path=f"src/file_{self.number}.py")
        called["content"].insert(0, thinking)
        self.history += [called, result(f"toolu_{self.number:03}", output(self.number))]
        self.number += 1


@pytest.mark.parametrize("notes", [{}, {"decisions": ["keep the files"]}], ids=["plain", "memory"])
def test_a_client_that_trims_its_history_gets_no_thinking_that_is_rejected(api: Api, notes: JSON) -> None:
    fields = {"id": "s1", "format": "anthropic", "model": MODEL, "policy": "off"}
    assert api.post("sessions/", fields).status_code == 201
    client = Client(api)
    for _ in range(4):
        client.answer(client.send())
    assert api.patch("sessions/s1/memory/", notes, if_match="*").status_code == 200
    del client.history[1:5]
    served = client.send()
    assert served["reconciled"]["status"] == "compacted"
    assert client.thoughts() == 0
    client.answer(served)
    client.answer(client.send())
    client.send()
    assert client.thoughts() == 2
    client.revert(1)
    assert client.thoughts() == 0


def test_a_fork_gets_no_thinking_of_an_answer_to_another_prompt(api: Api) -> None:
    fields = {"id": "s1", "format": "anthropic", "model": MODEL, "policy": "off"}
    assert api.post("sessions/", fields).status_code == 201
    client = Client(api)
    for _ in range(2):
        client.answer(client.send())
    client.answer(client.send())
    client.history[3:5] = [request("Rather read file 7.")]  # before the answer that was not sent yet
    served = client.send()
    assert served["reconciled"]["status"] == "forked"
    client.session = served["reconciled"]["session"]
    assert client.thoughts() == 1
    client.answer(client.send())
    client.send()
    assert client.thoughts() == 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_client_that_rewrites_its_history_at_random_gets_valid_prompts(api: Api, seed: int) -> None:
    fields = {"id": "s1", "format": "anthropic", "model": MODEL, "budget": {"input_tokens": 6_000}}
    assert api.post("sessions/", fields).status_code == 201
    client, chosen = Client(api), random.Random(seed)
    for step in range(12):
        history, sent = client.history, {}
        requests = [at for at, message in enumerate(history) if isinstance(message["content"], str)]
        match chosen.choice(["go on", "go on", "trim", "summarize", "rewind", "remember"]):
            case "trim":
                del history[1 : chosen.choice(requests)]
            case "summarize":
                history[:], sent = [request(f"Summary {step}.")], {"compacted": True}
            case "rewind":
                history[chosen.choice(requests) :] = [request(f"Rather {step}.")]
            case "remember":
                api.patch("sessions/s1/memory/", {"decisions": [f"Rule {step}"]}, if_match="*")
        served = client.send(**sent)
        Agent(api, served["reconciled"]["session"]).fetch()
        client.answer(served)
        if chosen.random() < 0.5:
            history += [answer(f"File {step} is short."), request(f"Go on with {step}.")]
