"""Responses sessions in compact mode whose agent does not send its reasoning again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accounts.models import Project
from accounts.services.gateway import gateway_update
from sessions.models import AgentSession
from tests.gateway.double import Provider
from tests.gateway.openai_talk import function_call, reasoned, responses_whole
from tests.gateway.running import Running


@pytest.mark.slow
def test_requests_without_the_reasoning_that_the_agent_requested_are_compacted(
    gateway: Running, provider: Provider, api_key: str, project: Project
) -> None:
    gateway_update(project=project, changes={"mode": "compact", "budget_tokens": 6_000})
    headers = {"x-contextapp-key": api_key, "authorization": "Bearer sk", "x-session-id": "s"}
    history: list[dict[str, Any]] = [{"role": "user", "content": "Read all the files."}]
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
    assert modes == ["passthrough; reason=new", "passthrough; reason=history", *["compact"] * 10]
    assert len(provider.received[-1].body) < len(json.dumps(history)) * 0.7
    session = AgentSession.objects.get()
    assert session.turn_count == 12
