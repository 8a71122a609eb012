"""Responses requests whose history the provider stores, from OpenAI's SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accounts.models import Project
from accounts.services.gateway import gateway_update
from sessions.models import AgentSession
from tests.gateway.double import Provider, Received, Reply
from tests.gateway.openai_talk import function_call, reasoned, response, said
from tests.gateway.running import Running
from tests.gateway.test_recording import stored

pytestmark = pytest.mark.processes  # OpenAI's SDK runs uname

JSON = dict[str, Any]


class OpenAI:
    """The Responses API with stored responses and conversations. It rejects what the provider rejects."""

    def __init__(self) -> None:
        self.threads: dict[str, list[JSON]] = {}
        self.items: dict[str, JSON] = {}
        self.bodies: list[JSON] = []
        self.rejected: list[str] = []
        self.compacts_at = 10**9

    def answer(self, received: Received) -> Reply:
        body = json.loads(received.body)
        self.bodies.append(body)
        previous, conversation = body.get("previous_response_id"), body.get("conversation")
        sent = body["input"]
        sent = [{"role": "user", "content": sent}] if isinstance(sent, str) else sent
        if previous and previous not in self.threads:
            return self._reject(f"Previous response with id '{previous}' not found.")
        history = self.threads.get(previous or conversation or "", [])
        known = {item["id"] for item in history if "id" in item}
        if any(item.get("id") in known for item in sent if item.get("type") != "item_reference"):
            return self._reject("Duplicate item found")
        sent = [self.items.get(item.get("id", ""), item) if "id" in item else item for item in sent]
        number = len(self.bodies)
        output = [reasoned(number), self._output(number, history + sent)]
        output = [{**item, "id": f"{item['id'][:3].rstrip('_')}_{number}"} for item in output]
        managed = body.get("context_management") or [{"compact_threshold": self.compacts_at}]
        if len(json.dumps(history + sent)) // 4 > managed[0]["compact_threshold"]:
            item = {"type": "compaction", "id": f"cmp_{number}", "encrypted_content": "opaque" * 9}
            output.insert(0, item)
        value = response(*output)
        self.items |= {item["id"]: item for item in output}
        self.threads[value["id"]] = [*history, *sent, *output]
        if conversation:
            self.threads[conversation] = self.threads[value["id"]]
        return Reply(parts=[json.dumps(value).encode()])

    def _reject(self, message: str) -> Reply:
        self.rejected.append(message)
        return Reply(status=400, parts=[json.dumps({"error": {"message": message}}).encode()])

    @staticmethod
    def _output(number: int, history: list[JSON]) -> JSON:
        if history[-1].get("role") == "user":
            return function_call(f"c{number}", "read", path=f"file_{number}.py")
        return said(f"Answer {number}.")


@pytest.fixture
def openai_api(provider: Provider) -> OpenAI:
    double = OpenAI()
    provider.otherwise = double.answer
    return double


class Agent:
    """An agent with OpenAI's SDK that sends only what is new."""

    def __init__(self, gateway: Running, api_key: str, **headers: str) -> None:
        import openai  # takes a second, even in runs that do not include this test

        self.gateway = gateway
        self.client = openai.OpenAI(
            api_key="sk",
            base_url=f"{gateway.url}/openai/v1",
            default_headers={"X-Contextapp-Key": api_key, **headers},
            max_retries=0,
        )
        self.header = ""

    def send(self, sent: Any, **fields: Any) -> Any:
        raw = self.client.responses.with_raw_response.create(model="gpt-5.1", input=sent, **fields)
        self.gateway.settle()
        self.header = raw.headers["x-contextapp"]
        return raw.parse()

    def done(self, answer: Any) -> list[JSON]:
        return [{"type": "function_call_output", "call_id": answer.output[-1].call_id, "output": "Done."}]


def kinds(session: AgentSession) -> list[str]:
    return [item.get("type") or item["role"] for item in stored(session)]


CALL = ["user", "reasoning", "function_call"]
ANSWER = ["function_call_output", "reasoning", "message"]


@pytest.mark.parametrize("headers", [{}, {"X-Session-Id": "s"}], ids=["unnamed", "named"])
def test_a_chain_of_responses_is_one_session(
    gateway: Running, openai_api: OpenAI, api_key: str, headers: dict[str, str]
) -> None:
    agent = Agent(gateway, api_key, **headers)
    last = agent.send("Read the file.")
    for _ in range(2):
        last = agent.send(agent.done(last), previous_response_id=last.id)
        last = agent.send("Again.", previous_response_id=last.id)
    [session] = AgentSession.objects.all()
    assert kinds(session) == [*CALL, *ANSWER, *CALL, *ANSWER, *CALL]
    assert (session.title, session.turn_count) == ("Read the file.", 5)
    assert session.output_tokens == 5 * 20
    assert openai_api.rejected == []


@pytest.mark.parametrize("value", ["conv_1", {"id": "conv_1"}], ids=["id", "object"])
def test_a_conversation_is_one_session(
    gateway: Running, openai_api: OpenAI, api_key: str, value: Any
) -> None:
    openai_api.threads["conv_1"] = []
    agent = Agent(gateway, api_key)
    answer = agent.send("Read the file.", conversation="conv_1")
    agent.send(agent.done(answer), conversation="conv_1")
    agent.send("Again.", conversation="conv_1", store=True)
    [session] = AgentSession.objects.all()
    assert session.external_id == "conv_1"
    assert kinds(session) == [*CALL, *ANSWER, *CALL]


def test_two_conversations_of_one_named_session(gateway: Running, openai_api: OpenAI, api_key: str) -> None:
    agent = Agent(gateway, api_key, **{"X-Session-Id": "s"})
    for name in ("conv_1", "conv_2"):
        openai_api.threads[name] = []
    answers = {name: agent.send(f"Read {name}.", conversation=name) for name in ("conv_1", "conv_2")}
    for name, answer in answers.items():
        agent.send(agent.done(answer), conversation=name)
    root, child = AgentSession.objects.order_by("started_at")
    assert (root.external_id, child.external_id, child.parent_id) == ("s", "s/conv_2", root.pk)
    assert [kinds(root), kinds(child)] == [[*CALL, *ANSWER]] * 2
    assert stored(child)[0]["content"] == "Read conv_2."


def test_a_response_that_is_continued_twice_is_forked_once(
    gateway: Running, openai_api: OpenAI, api_key: str
) -> None:
    agent = Agent(gateway, api_key)
    first = agent.send("Read the file.")
    second = agent.send(agent.done(first), previous_response_id=first.id)
    other = agent.send([{**agent.done(first)[0], "output": "Failed."}], previous_response_id=first.id)
    agent.send("And then?", previous_response_id=other.id)
    agent.send("And now?", previous_response_id=second.id)
    root, fork = AgentSession.objects.order_by("started_at")
    assert (fork.parent_id, fork.forked_at) == (root.pk, 3)
    assert [kinds(root), kinds(fork)] == [[*CALL, *ANSWER, *CALL]] * 2
    assert stored(fork)[3]["output"] == "Failed."
    assert root.output_tokens + fork.output_tokens == 5 * 20


def test_a_request_that_is_repeated_after_a_cut_response_adds_only_the_answer(
    gateway: Running, provider: Provider, openai_api: OpenAI, api_key: str
) -> None:
    agent = Agent(gateway, api_key)
    first = agent.send("Read the file.")
    usage = {"input_tokens": 100, "output_tokens": 3, "total_tokens": 103}
    failed = response(reasoned(9), status="failed", usage=usage)
    provider.script = [Reply(parts=[json.dumps(failed).encode()])]
    agent.send(agent.done(first), previous_response_id=first.id)
    agent.send(agent.done(first), previous_response_id=first.id)
    [session] = AgentSession.objects.all()
    assert kinds(session) == [*CALL, *ANSWER]


def test_a_chain_whose_beginning_bypassed_the_gateway(
    gateway: Running, openai_api: OpenAI, api_key: str
) -> None:
    openai_api.threads["resp_before"] = [{"role": "user", "content": "Hi."}]
    agent = Agent(gateway, api_key)
    answer = agent.send("Read the file.", previous_response_id="resp_before")
    agent.send(agent.done(answer), previous_response_id=answer.id)
    other = Agent(gateway, api_key)
    other.send("Read the file.", previous_response_id="resp_before")
    first, second = AgentSession.objects.order_by("started_at")
    assert (kinds(first), kinds(second)) == ([*CALL, *ANSWER], CALL)


def test_whole_histories_before_and_after_stored_ones(
    gateway: Running, openai_api: OpenAI, api_key: str
) -> None:
    agent = Agent(gateway, api_key)
    history: list[Any] = [{"role": "user", "content": "Read the file."}]
    first = agent.send(history)
    second = agent.send(agent.done(first), previous_response_id=first.id)
    history += [item.to_dict() for item in first.output]
    history += [*agent.done(first), *(item.to_dict() for item in second.output)]
    history.append({"role": "user", "content": "Again."})
    agent.send(history)
    [session] = AgentSession.objects.all()
    assert kinds(session) == [*CALL, *ANSWER, *CALL]


def test_references_to_stored_items_are_those_items(
    gateway: Running, openai_api: OpenAI, api_key: str
) -> None:
    agent = Agent(gateway, api_key)
    history: list[Any] = [{"role": "user", "content": "Read the file."}]
    for _ in range(3):
        answer = agent.send(history)
        history += [{"type": "item_reference", "id": item.id} for item in answer.output]
        if answer.output[-1].type == "function_call":
            history += agent.done(answer)
        else:
            history.append({"role": "user", "content": "Again."})
    [session] = AgentSession.objects.all()
    assert kinds(session) == [*CALL, *ANSWER, *CALL]


def test_another_key_never_reaches_a_chain(
    gateway: Running, openai_api: OpenAI, api_key: str, stranger_api_key: str
) -> None:
    agent, stranger = Agent(gateway, api_key), Agent(gateway, stranger_api_key)
    first = agent.send("Read the file.")
    stranger.send(agent.done(first), previous_response_id=first.id)
    own, other = AgentSession.objects.order_by("started_at")
    assert own.project_id != other.project_id
    assert (kinds(own), kinds(other)) == (CALL, ANSWER)


class TestCompactMode:
    @pytest.fixture(autouse=True)
    def compact(self, project: Project) -> None:
        gateway_update(project=project, changes={"mode": "compact", "budget_tokens": 4_000})

    def test_requests_are_left_alone_with_a_reason(
        self, gateway: Running, openai_api: OpenAI, api_key: str
    ) -> None:
        agent = Agent(gateway, api_key)
        last = agent.send("Read the file.")
        for _ in range(4):
            last = agent.send("Read more. " * 800, previous_response_id=last.id)
            assert agent.header == "passthrough; reason=server-state"
        assert "context_management" not in openai_api.bodies[-1]
        [session] = AgentSession.objects.all()
        assert not session.compactions.exists()

    def test_the_provider_compacts_with_its_engine(
        self, gateway: Running, openai_api: OpenAI, api_key: str, project: Project
    ) -> None:
        project.default_policy = {"preset": "balanced", "engine": "provider"}
        project.save()
        agent = Agent(gateway, api_key)
        last = agent.send("Read the file.")
        for _ in range(4):
            last = agent.send("Read more. " * 800, previous_response_id=last.id)
            assert agent.header.startswith("compact; engine=provider; ")
        assert openai_api.bodies[-1]["context_management"] == [
            {"type": "compaction", "compact_threshold": 3_800}
        ]
        [session] = AgentSession.objects.all()
        assert {row.trigger for row in session.compactions.all()} == {"provider"}
        assert "compaction" in kinds(session)
        assert openai_api.rejected == []
