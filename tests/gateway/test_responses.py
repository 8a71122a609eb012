"""Responses sessions in compact mode."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accounts.models import Project
from accounts.services.gateway import gateway_update
from sessions.models import AgentSession
from tests.gateway.anthropic_talk import request, streamed, text
from tests.gateway.double import Provider
from tests.gateway.openai_talk import function_call, reasoned, responses_whole, said
from tests.gateway.running import Running


@pytest.mark.slow
def test_requests_without_the_reasoning_that_the_agent_requested_are_compacted(
    gateway: Running, provider: Provider, api_key: str, project: Project
) -> None:
    """Also if the agent, such as OpenCode, has requested the title of the session from another provider."""
    gateway_update(project=project, changes={"mode": "compact", "budget_tokens": 6_000})
    headers = {"x-contextapp-key": api_key, "authorization": "Bearer sk", "x-session-id": "s"}
    history: list[dict[str, Any]] = [{"role": "user", "content": "Read all the files."}]
    provider.script = [streamed(text("Files"))]
    gateway.call("/anthropic/v1/messages", request(*history), headers | {"user-agent": "opencode/1.18.33"})
    gateway.settle()
    modes = []
    for number in range(12):
        call = function_call(f"c{number}", "read", path=f"file_{number}.py")
        size = len(json.dumps(history)) // 4
        provider.script = [responses_whole(reasoned(number), call, input_tokens=size)]
        body = {
            "model": "gpt-5",
            "include": ["reasoning.encrypted_content"],
            "store": False,
            "input": history,
        }
        response = gateway.call("/openai/v1/responses", json.dumps(body).encode(), headers)
        modes.append(response.headers["x-contextapp"].partition("; tokens")[0])
        output = "\n".join(f"{number}.{line} def handler_{number}_{line}()" for line in range(200))
        history += [call, {"type": "function_call_output", "call_id": f"c{number}", "output": output}]
        gateway.settle()
    assert modes == ["passthrough; reason=history", *["compact"] * 11]
    assert len(provider.received[-1].body) < len(json.dumps(history)) * 0.7
    session = AgentSession.objects.get(external_id="s")
    assert (session.format, session.turn_count) == ("openai-responses", 12)
    assert session.omitted_count == 11
    assert not session.compactions.filter(trigger="client").exists()


@pytest.mark.slow
def test_a_session_that_begins_with_a_refusal_is_compacted(
    gateway: Running, provider: Provider, api_key: str, project: Project
) -> None:
    """Messages of Chat Completions have refusals too, but no items."""
    gateway_update(project=project, changes={"mode": "compact", "budget_tokens": 6_000})
    headers = {"x-contextapp-key": api_key, "authorization": "Bearer sk", "x-session-id": "s"}
    history: list[dict[str, Any]] = [{"role": "user", "content": "Read all the files."}]
    answers = [{**said(""), "content": [{"type": "refusal", "refusal": "I cannot do that."}]}]
    answers += [function_call(f"c{number}", "read", path=f"file_{number}.py") for number in range(10)]
    for number, item in enumerate(answers):
        provider.script = [responses_whole(item, input_tokens=len(json.dumps(history)) // 4)]
        body = {"model": "gpt-5", "store": False, "input": history}
        response = gateway.call("/openai/v1/responses", json.dumps(body).encode(), headers)
        output = "\n".join(f"{number}.{line} def handler_{number}_{line}()" for line in range(200))
        result = {"type": "function_call_output", "call_id": item.get("call_id"), "output": output}
        history += [item, result if "call_id" in item else {"role": "user", "content": "Please."}]
        gateway.settle()
    session = AgentSession.objects.get()
    assert session.format == "openai-responses"
    assert session.compaction_count
    assert response.headers["x-contextapp"].startswith("compact; ")
