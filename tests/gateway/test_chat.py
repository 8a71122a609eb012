"""Chat Completions: kinds of calls and answers that only some clients and models use."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accounts.models import Project
from accounts.services.gateway import gateway_update
from compaction.validation import validate
from sessions.models import AgentSession
from tests.gateway.double import Provider, Reply
from tests.gateway.openai_talk import EVENTS, chat_stream, chat_whole
from tests.gateway.running import Response, Running
from tests.gateway.test_recording import stored

JSON = dict[str, Any]


class Agent:
    """A client that sends its whole history."""

    def __init__(self, gateway: Running, provider: Provider, api_key: str) -> None:
        self.gateway, self.provider = gateway, provider
        self.headers = {"x-contextapp-key": api_key, "authorization": "Bearer sk", "x-session-id": "s"}
        self.history: list[JSON] = [{"role": "user", "content": "Read all the files."}]

    def say(self, answer: JSON, *results: JSON, is_stream: bool = True, once: str = "") -> Response:
        """Send the history, get the answer and append it with the results of its calls.

        `once` is the text of a system message at the end of this request only.
        """
        talk = chat_stream if is_stream else chat_whole
        self.provider.otherwise = lambda received: talk(answer, prompt=len(received.body) // 4)
        body: JSON = {"model": "gpt-5", "stream": is_stream, "messages": [*self.history]}
        if once:
            body["messages"].append({"role": "system", "content": once})
        response = self.gateway.call("/openai/v1/chat/completions", json.dumps(body).encode(), self.headers)
        assert response.status == 200, response.body
        self.history += [answer, *results]
        self.gateway.settle()
        return response

    @property
    def forwarded(self) -> list[JSON]:
        """The messages of the last request to the provider."""
        found: list[JSON] = json.loads(self.provider.received[-1].body)["messages"]
        return found


@pytest.fixture
def agent(gateway: Running, provider: Provider, api_key: str) -> Agent:
    return Agent(gateway, provider, api_key)


PATCH = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin Patch"}}
READ = {"id": "c2", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}


@pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "json"])
def test_calls_of_custom_tools_are_recorded(agent: Agent, is_stream: bool) -> None:
    calls = {"role": "assistant", "content": None, "tool_calls": [PATCH, READ]}
    results = [{"role": "tool", "tool_call_id": id, "content": "Done."} for id in ("c1", "c2")]
    agent.say(calls, *results, is_stream=is_stream)
    agent.say({"role": "assistant", "content": "All done."}, is_stream=is_stream)
    session = AgentSession.objects.get()
    assert stored(session) == agent.history
    assert session.turn_count == 2


def test_the_first_of_several_answers_is_recorded(agent: Agent) -> None:
    first, second = ({"role": "assistant", "content": words} for words in ("Yes.", "No, never."))
    others = [part.replace(b'"index": 0', b'"index": 1') for part in chat_stream(second).parts[:-2]]
    agent.provider.script = [Reply(headers=EVENTS, parts=[*others, *chat_stream(first).parts])]
    agent.say(first)
    assert stored(AgentSession.objects.get()) == agent.history


class TestCompactMode:
    @pytest.fixture(autouse=True)
    def compact_mode(self, project: Project) -> None:
        gateway_update(project=project, changes={"mode": "compact", "budget_tokens": 6_000})

    @pytest.mark.slow
    def test_refusals_and_invalid_arguments_do_not_stop_compactions(self, agent: Agent) -> None:
        """The client sends both again, so its own request breaks the same rule."""
        for number in range(8):
            self.work(agent, number)
        assert AgentSession.objects.get().compaction_count
        agent.say({"role": "assistant", "content": None, "refusal": "I cannot do that."}, is_stream=False)
        agent.history.append({"role": "user", "content": "Go on."})
        assert self.work(agent, 8).startswith("compact; ")
        self.work(agent, 9, arguments='{"path": "a.p')
        assert self.work(agent, 10).startswith("compact; ")
        assert validate(agent.forwarded, "openai")

    @pytest.mark.slow
    def test_requests_with_messages_that_the_agent_does_not_keep_are_compacted(self, agent: Agent) -> None:
        modes = [self.work(agent, number, once=f"Turn {number}.") for number in range(14)]
        assert all(mode.startswith("compact; ") for mode in modes[1:])
        assert agent.forwarded[-1] == {"role": "system", "content": "Turn 13."}
        assert "Turn 12." not in json.dumps(agent.forwarded)
        session = AgentSession.objects.get()
        assert session.turn_count == 14
        assert session.compactions.filter(trigger="hard", state="done").exists()
        assert not session.compactions.filter(trigger="client").exists()
        assert session.omitted_count == 13

    def work(self, agent: Agent, number: int, *, arguments: str = "{}", once: str = "") -> str:
        """Call a tool. Returns how the request was handled."""
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": arguments}}
        output = "\n".join(f"{number}.{line} def handler_{number}_{line}()" for line in range(200))
        result = {"role": "tool", "tool_call_id": f"c{number}", "content": output}
        response = agent.say({"role": "assistant", "content": None, "tool_calls": [call]}, result, once=once)
        return response.headers["x-contextapp"]

    @pytest.mark.slow
    def test_edited_calls_in_deprecated_fields_stay_in_these_fields(self, agent: Agent) -> None:
        for number in range(12):
            call = {"name": "read", "arguments": json.dumps({"path": f"file_{number}.py"})}
            output = "\n".join(f"{number}.{line} def handler_{number}_{line}()" for line in range(200))
            result = {"role": "function", "name": "read", "content": output}
            agent.say({"role": "assistant", "content": None, "function_call": call}, result)
            roles = [message["role"] for message in agent.forwarded]
            assert "tool" not in roles
            results = [index for index, role in enumerate(roles) if role == "function"]
            assert all("function_call" in agent.forwarded[index - 1] for index in results)
        assert len(json.dumps(agent.forwarded)) < len(json.dumps(agent.history)) * 0.7
