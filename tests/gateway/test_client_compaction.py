"""Clients that request a summary from the provider and send it in place of their older messages."""

from __future__ import annotations

import json

import pytest

from compaction.memory.origins import Author
from sessions.models import AgentSession, Edit
from sessions.services.memory.revisions import Writer, memory_patch
from tests.gateway.anthropic_talk import request, text, whole
from tests.gateway.double import Provider, Reply
from tests.gateway.openai_talk import response, said
from tests.gateway.running import Running
from tests.gateway.test_recording import MESSAGES, THINKING, Agent, assistant, stored, user

BLOCK = {"type": "compaction", "content": "We have read the files.", "signature": "c2lnbmVk"}
#: A model that binds thinking to the preceding prompt.
BOUND = "claude-opus-5-5"


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0, 2], ids=["all", "beginning"])
def test_a_summary_by_anthropic_on_demand(
    gateway: Running, provider: Provider, api_key: str, kept: int
) -> None:
    agent = Agent(gateway, provider, api_key, x_session_id="s", user_agent="agent/1")
    for number in range(4):
        agent.say(user(f"Question {number}"), text(f"Answer {number}"))
    summarized = agent.history[: len(agent.history) - kept]
    provider.script = [whole(BLOCK)]
    body = request(*summarized, stream=False, compaction={"type": "summarize"})
    assert gateway.call(MESSAGES, body, agent.headers).status == 200
    gateway.settle()
    agent.history = [{"role": "assistant", "content": [BLOCK]}, *agent.history[len(summarized) :]]
    for number in (4, 5):
        agent.say(user(f"Question {number}"), text(f"Answer {number}"))
    _check(agent.history)


@pytest.mark.slow
def test_a_compaction_by_openai_on_demand(gateway: Running, provider: Provider, api_key: str) -> None:
    headers = {"x-contextapp-key": api_key, "authorization": "Bearer sk", "x-session-id": "s"}
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "opaque"}
    history: list[dict[str, object]] = []

    def say(words: str) -> None:
        history.append({"type": "message", "role": "user", "content": words})
        answer = {**said(f"To {words}"), "id": f"msg_{len(history)}"}
        provider.script = [Reply(parts=[json.dumps(response(answer)).encode()])]
        body = json.dumps({"model": "gpt-5.1", "input": history, "store": False}).encode()
        assert gateway.call("/openai/v1/responses", body, headers).status == 200
        history.append(answer)
        gateway.settle()

    for number in range(4):
        say(f"Question {number}")
    usage = {"input_tokens": 900, "output_tokens": 70, "total_tokens": 970}
    reply = {"id": "resp_c", "object": "response.compaction", "output": [*history[:1], item], "usage": usage}
    provider.script = [Reply(parts=[json.dumps(reply).encode()])]
    body = json.dumps({"model": "gpt-5.1", "input": history}).encode()
    assert gateway.call("/openai/v1/responses/compact", body, headers).status == 200
    history[:] = [item]
    for number in (4, 5):
        say(f"Question {number}")
    _check(history)
    aside = AgentSession.objects.exclude(external_id="s").get()
    assert (aside.uncached_tokens, aside.output_tokens, stored(aside)) == (900, 70, [item])


def _check(history: list[dict[str, object]]) -> None:
    """Expect a session with the client's compaction, no fork, and the messages after it once."""
    session = AgentSession.objects.get(external_id="s")
    assert not AgentSession.objects.filter(forked_at__isnull=False).exists()
    assert [row.trigger for row in session.compactions.all()] == ["client"]
    assert stored(session)[-len(history) :] == history
    assert session.message_count == 8 + len(history)


@pytest.mark.parametrize("origin", ["gateway", "claude-code", "api"])
def test_a_recorded_compaction_adds_no_memory_whatever_the_session_began_as(
    gateway: Running, provider: Provider, api_key: str, origin: str
) -> None:
    agent = Agent(gateway, provider, api_key, x_session_id="s", user_agent="agent/1")
    for number in range(2):
        agent.say(user(f"Question {number}"), text(f"Answer {number}"), model=BOUND)
    AgentSession.objects.update(origin=origin)
    session = AgentSession.objects.get()
    writer = Writer(author=Author.PERSON)
    memory_patch(session=session, changes={"decisions": ["keep the files"]}, writer=writer)
    agent.history = [user("<summary>Two questions.</summary>"), assistant(text("Yes."))]
    agent.say(user("Go on."), THINKING, text("Done."), model=BOUND)
    session.refresh_from_db()
    assert [row.trigger for row in session.compactions.all()] == ["client"]
    assert not session.shown_components.get("memory")
    assert not Edit.objects.filter(strategy="clear_thinking").exists()
