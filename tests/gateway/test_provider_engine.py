"""The engine of the provider: parameters in the forwarded requests, and what the provider reports."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import anthropic
import pytest

from accounts.models import Project
from accounts.services.gateway import gateway_update
from sessions.models import AgentSession, Recap
from tests.compaction.providers import faults
from tests.gateway.anthropic_talk import STREAM, event, stream, tool_use
from tests.gateway.double import Provider, Received, Reply
from tests.gateway.openai_talk import function_call, reasoned, responses_stream
from tests.gateway.running import Running

pytestmark = pytest.mark.processes  # OpenAI's SDK runs uname

BUDGET = 60_000
JSON = dict[str, Any]


@pytest.fixture
def project(project: Project) -> Project:
    gateway_update(project=project, changes={"mode": "compact", "budget_tokens": BUDGET})
    project.default_policy = {"preset": "balanced", "engine": "provider"}
    project.save()
    return project


class Claude:
    """Anthropic's API with context editing, summaries and bound thinking (rule A11)."""

    def __init__(self) -> None:
        self.bodies: list[JSON] = []
        self.betas: list[str] = []

    def answer(self, received: Received) -> Reply:
        body = json.loads(received.body)
        messages = body["messages"]
        self.bodies.append(body)
        self.betas.append(received.header("anthropic-beta") or "")
        if error := self._error(body):
            return Reply(
                status=400, parts=[json.dumps({"type": "error", "error": {"message": error}}).encode()]
            )
        managed = {edit["type"]: edit for edit in body.get("context_management", {}).get("edits", ())}
        size = len(received.body) // 4
        blocks: list[JSON] = [
            {"type": "thinking", "thinking": "Next.", "signature": signature(messages)},
            tool_use(f"toolu_{len(self.bodies)}", command="cat"),
        ]
        summary = managed.get("compact_20260112")
        if summary and size > summary["trigger"]["value"]:
            block = {"type": "compaction", "content": "We have read many files."}
            return _reply([block, *blocks], size=size, compacted=True)
        results = [
            b for m in messages if isinstance(m["content"], list) for b in m["content"] if "tool_use_id" in b
        ]
        clear = managed.get("clear_tool_uses_20250919")
        applied: list[JSON] = []
        if clear and size > clear["trigger"]["value"]:
            cleared = len(results) - clear["keep"]["value"]
            tokens = size * cleared // len(results)
            applied = [{"type": clear["type"], "cleared_tool_uses": cleared, "cleared_input_tokens": tokens}]
        return _reply(
            blocks, size=size - sum(edit["cleared_input_tokens"] for edit in applied), applied=applied
        )

    def _error(self, body: JSON) -> str:
        if "context_management" in body and "context-management-2025-06-27" not in self.betas[-1]:
            return "context_management: Extra inputs are not permitted"
        messages = body["messages"]
        for index, message in enumerate(messages):
            for block in message["content"] if isinstance(message["content"], list) else ():
                if block["type"] == "thinking" and block["signature"] != signature(messages[:index]):
                    start = max(
                        (i for i, m in enumerate(messages[: index + 1]) if _is_summary(m)), default=None
                    )
                    if start is None:
                        return "The block is bound to a different conversation"
        return ""


def _is_summary(message: JSON) -> bool:
    content = message["content"]
    return isinstance(content, list) and bool(content) and content[0]["type"] == "compaction"


def signature(messages: list[JSON]) -> str:
    """Sign the messages, without cache breakpoints."""
    return hashlib.sha256(json.dumps(messages, sort_keys=True).encode()).hexdigest()


def _reply(blocks: list[JSON], *, size: int, applied: Any = (), compacted: bool = False) -> Reply:
    parts = list(stream(*blocks, stop="tool_use", model="claude-opus-5-5", read=max(size - 312, 0)))
    usage: JSON = {"output_tokens": 57}
    if compacted:
        usage["iterations"] = [
            {"type": "compaction", "input_tokens": size, "output_tokens": 900},
            {"type": "message", "input_tokens": 1_200, "output_tokens": 57},
        ]
    parts[-2] = event(
        "message_delta",
        delta={"stop_reason": "tool_use"},
        usage=usage,
        context_management={"applied_edits": list(applied)},
    )
    return Reply(headers=STREAM, parts=parts)


def output(number: int) -> str:
    return "\n".join(f"{number}.{line} def handler_{number}_{line}(): return {line}" for line in range(200))


class Worker:
    """An agent with Anthropic's SDK that reads files and sends its whole history."""

    def __init__(self, gateway: Running, api_key: str) -> None:
        self.gateway = gateway
        self.client = anthropic.Anthropic(
            api_key="sk-ant",
            base_url=f"{gateway.url}/anthropic",
            default_headers={"X-Contextapp-Key": api_key, "X-Session-Id": "s"},
            max_retries=0,
        )
        self.history: list[Any] = [{"role": "user", "content": "Read all the files."}]
        self.headers: list[str] = []

    def work(self, number: int) -> None:
        with self.client.messages.stream(
            model="claude-opus-5-5",
            max_tokens=100,
            thinking={"type": "adaptive"},
            messages=self.history,
            tools=[{"name": "Bash", "input_schema": {"type": "object"}}],
        ) as answer:
            message = answer.get_final_message()
            self.headers.append(answer.response.headers["x-contextapp"])
        content = [block.to_dict() for block in message.content]
        result = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": output(number)}
        self.history += [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
        self.gateway.settle()


def test_anthropic_clears_outputs_and_thinking_survives(
    gateway: Running, provider: Provider, api_key: str, project: Project
) -> None:
    claude, worker = Claude(), Worker(gateway, api_key)
    provider.otherwise = claude.answer
    for number in range(22):
        worker.work(number)
    assert all(header.startswith("compact; engine=provider; ") for header in worker.headers[1:])
    assert claude.bodies[-1]["messages"] == worker.history[:-2]
    [session] = AgentSession.objects.all()
    records = list(session.compactions.order_by("number"))
    assert records
    assert {row.trigger for row in records} == {"provider"}
    assert records[0].record["engine"] == "provider"
    assert records[0].tokens_after < records[0].tokens_before
    assert records[0].record["collapsed"] == records[0].record["applied_edits"][0]["cleared_tool_uses"]
    assert not session.edits.exists()


def test_anthropics_summary_starts_the_next_request(
    gateway: Running, provider: Provider, api_key: str, project: Project
) -> None:
    claude, worker = Claude(), Worker(gateway, api_key)
    provider.otherwise = claude.answer
    project.default_policy = {"preset": "balanced", "engine": "provider", "soft": 0.95}
    project.save()
    for number in range(40):
        worker.work(number)
        if any(map(_is_summary, worker.history)):
            break
    assert any(map(_is_summary, worker.history))
    worker.work(40)
    assert _is_summary(claude.bodies[-1]["messages"][0])
    assert claude.bodies[-1]["messages"] == worker.history[-4:-2]
    [session] = AgentSession.objects.all()
    row = session.compactions.get(record__has_key="iterations", record__iterations__0__type="compaction")
    assert row.record["iterations"] == [
        {
            "type": "compaction",
            "input_tokens": row.record["iterations"][0]["input_tokens"],
            "output_tokens": 900,
        }
    ]
    assert [edit.op for edit in row.edits.all()] == ["evict"]
    assert row.tokens_after < row.tokens_before / 4


def test_openai_compacts_into_an_item_with_a_readable_recap_beside_it(
    gateway: Running, provider: Provider, api_key: str, project: Project
) -> None:
    import openai  # takes a second, even in runs that do not include this test

    client = openai.OpenAI(
        api_key="sk", base_url=f"{gateway.url}/openai/v1", default_headers={"X-Contextapp-Key": api_key}
    )
    history: list[Any] = [{"role": "user", "content": "Read all the files."}]
    bodies: list[JSON] = []

    def answer(received: Received) -> Reply:
        body = json.loads(received.body)
        bodies.append(body)
        assert faults(body["input"], "openai-responses") == []
        number, size = len(bodies), len(received.body) // 4
        [managed] = body.get("context_management") or [{"compact_threshold": BUDGET}]
        items = [reasoned(number), function_call(f"c{number}", "read", path=f"file_{number}.py")]
        if size > managed["compact_threshold"]:
            items.insert(0, {"type": "compaction", "id": "cmp_1", "encrypted_content": "opaque" * 99})
        return responses_stream(*items, input_tokens=size)

    provider.otherwise = answer
    for number in range(40):
        fields: JSON = {"model": "gpt-5.1", "store": False, "include": ["reasoning.encrypted_content"]}
        events = list(client.responses.create(input=history, stream=True, **fields))
        items = [item.to_dict() for item in events[-1].response.output]  # type: ignore[union-attr]
        done = {"type": "function_call_output", "call_id": items[-1]["call_id"], "output": output(number)}
        history += [*items, done]
        gateway.settle()
        if bodies[-1]["input"][0].get("type") == "compaction":
            break
    assert bodies[1]["context_management"] == [
        {"type": "compaction", "compact_threshold": int(BUDGET * 0.95)}
    ]
    assert bodies[-1]["input"][0]["encrypted_content"] == "opaque" * 99
    assert len(bodies[-1]["input"]) < 6
    [session] = AgentSession.objects.all()
    [row] = session.compactions.all()
    assert (row.trigger, row.record["engine"]) == ("provider", "provider")
    assert Recap.objects.get(compaction=row).tokens > 50
