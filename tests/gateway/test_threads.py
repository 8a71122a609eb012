"""Conversations that Anthropic stores (message threads), from Anthropic's SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from accounts.models import Project
from accounts.services.gateway import gateway_update
from sessions.models import AgentSession
from tests.gateway.anthropic_talk import text, tool_use, whole
from tests.gateway.double import Provider, Received, Reply
from tests.gateway.running import Running
from tests.gateway.test_recording import stored

JSON = dict[str, Any]
TOOL = {"name": "read", "description": "Reads a file.", "input_schema": {"type": "object"}}


class Threads:
    """The Messages API with stored threads. It rejects what the provider rejects."""

    def __init__(self) -> None:
        self.histories: dict[str, list[JSON]] = {}
        self.bodies: list[JSON] = []

    def answer(self, received: Received) -> Reply:
        body = json.loads(received.body)
        self.bodies.append(body)
        thread: Mapping[str, Any] = body.get("thread") or {}
        if thread and "context_management" in body:
            return rejection("thread_unsupported_request")
        history = self.histories.pop(thread.get("previous_message_id", ""), None)
        if thread.get("type") == "continue" and history is None:
            return rejection("thread_not_found")
        number = len(self.bodies)
        is_read = body["messages"][-1]["content"] == "Read it."
        reply = whole(tool_use(f"t{number}", path="a.py") if is_read else text(f"Answer {number}."))
        message = json.loads(b"".join(reply.parts))
        said = {"role": "assistant", "content": message["content"]}
        self.histories[message["id"]] = [*(history or []), *body["messages"], said]
        return reply


def rejection(code: str) -> Reply:
    details = {"error_code": code}
    error = {"type": "invalid_request_error", "message": code, "details": details}
    return Reply(status=400, parts=[json.dumps({"type": "error", "error": error}).encode()])


class Agent:
    """An agent that lets the provider store its conversation. It sends what Anthropic's tool runner sends."""

    def __init__(self, gateway: Running, api_key: str, **headers: str) -> None:
        import anthropic

        self.gateway = gateway
        self.client = anthropic.Anthropic(
            api_key="sk-ant",
            base_url=f"{gateway.url}/anthropic",
            default_headers={"X-Contextapp-Key": api_key, **headers},
            max_retries=0,
        )
        self.header = ""

    def create(self, messages: list[JSON], **fields: Any) -> JSON:
        return self._send(messages, thread={"type": "create"}, system="Be brief.", tools=[TOOL], **fields)

    def continue_thread(self, last: JSON, messages: list[JSON]) -> JSON:
        return self._send(messages, thread={"type": "continue", "previous_message_id": last["id"]})

    def _send(self, messages: list[JSON], **fields: Any) -> JSON:
        raw = self.client.messages.with_raw_response.create(
            model="claude-sonnet-5-5",
            max_tokens=100,
            messages=messages,  # type: ignore[arg-type]
            extra_body=fields,  # known to the SDK from 2.14 on
            extra_headers={"anthropic-beta": "message-threads-2026-08-12"},
        )
        self.gateway.settle()
        self.header = raw.headers["x-contextapp"]
        return raw.parse().to_dict()


def asked(words: str) -> JSON:
    return {"role": "user", "content": words}


def done(answer: JSON, output: str = "x = 1") -> JSON:
    id = answer["content"][-1]["id"]
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": output}]}


@pytest.fixture
def threads(provider: Provider) -> Threads:
    double = Threads()
    provider.otherwise = double.answer
    return double


@pytest.mark.parametrize("headers", [{}, {"X-Session-Id": "s"}], ids=["unnamed", "named"])
def test_a_thread_is_one_session(
    gateway: Running, threads: Threads, api_key: str, headers: dict[str, str]
) -> None:
    agent = Agent(gateway, api_key, **headers)
    first = agent.create([asked("Read it.")])
    second = agent.continue_thread(first, [done(first)])
    third = agent.continue_thread(second, [asked("Read it.")])
    last = agent.continue_thread(third, [done(third)])
    [session] = AgentSession.objects.all()
    assert stored(session) == threads.histories[last["id"]]
    assert (session.title, session.turn_count, session.preamble_version) == ("Read it.", 4, 1)


def test_a_thread_that_the_provider_lost_continues_its_session(
    gateway: Running, threads: Threads, api_key: str
) -> None:
    import anthropic

    agent = Agent(gateway, api_key)
    first = agent.create([asked("Read it.")])
    second = agent.continue_thread(first, [done(first)])
    history = [*threads.histories.pop(second["id"]), asked("Read it.")]
    with pytest.raises(anthropic.BadRequestError):
        agent.continue_thread(second, [asked("Read it.")])
    third = agent.create(history)
    last = agent.continue_thread(third, [done(third)])
    [session] = AgentSession.objects.all()
    assert stored(session) == threads.histories[last["id"]]
    assert session.turn_count == 4


@pytest.mark.parametrize("engine", ["own", "provider"])
def test_threads_are_not_compacted(
    gateway: Running, threads: Threads, api_key: str, project: Project, engine: str
) -> None:
    project.default_policy = {"preset": "balanced", "engine": engine}
    project.save()
    gateway_update(project=project, changes={"mode": "compact", "budget_tokens": 5_000})
    agent = Agent(gateway, api_key)
    last = agent.create([asked("Read it.")])
    for _ in range(3):
        last = agent.continue_thread(last, [done(last, "a line of the file\n" * 3_000)])
        assert agent.header == "passthrough; reason=server-state"
        last = agent.continue_thread(last, [asked("Read it.")])
    [history] = threads.histories.values()
    [session] = AgentSession.objects.all()
    assert stored(session) == history
    assert not session.compactions.exists()
