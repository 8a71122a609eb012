"""The engine of the provider: parameters in the forwarded requests, and what the provider reports."""

from __future__ import annotations

import json
import threading
from itertools import pairwise
from typing import Any

import pytest

from accounts.models import Project
from accounts.services.gateway import gateway_update
from sessions.models import AgentSession, Recap
from sessions.services.compactions import rejected_summary
from tests.api.client import Api
from tests.compaction.providers import faults
from tests.gateway.claude import Claude, begins_with_block
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


def output(number: int) -> str:
    return "\n".join(f"{number}.{line} def handler_{number}_{line}(): return {line}" for line in range(200))


class Worker:
    """An agent with Anthropic's SDK that reads files and sends its whole history."""

    def __init__(self, gateway: Running, api_key: str, *, model: str = "claude-opus-5-5") -> None:
        import anthropic  # takes a second, even in runs that do not include this test

        self.gateway, self.model = gateway, model
        self.client = anthropic.Anthropic(
            api_key="sk-ant",
            base_url=f"{gateway.url}/anthropic",
            default_headers={"X-Contextapp-Key": api_key, "X-Session-Id": "s"},
            max_retries=0,
        )
        self.history: list[Any] = [{"role": "user", "content": "Read all the files."}]
        self.headers: list[str] = []

    def work(self, number: int, *, says: str = "") -> None:
        """Make one call, and append its result and what the user says."""
        with self.client.messages.stream(
            model=self.model,
            max_tokens=100,
            thinking={"type": "adaptive"},
            messages=self.history,
            tools=[{"name": "Bash", "input_schema": {"type": "object"}}],
        ) as answer:
            message = answer.get_final_message()
            self.headers.append(answer.response.headers["x-contextapp"])
        content = [block.to_dict() for block in message.content]
        result = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": output(number)}
        said = [{"type": "text", "text": says}] if says else []
        self.history += [
            {"role": "assistant", "content": content},
            {"role": "user", "content": [result, *said]},
        ]
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
    claude, worker = Claude(), Worker(gateway, api_key, model="claude-opus-4-8")
    provider.otherwise = claude.answer
    project.default_policy = {"preset": "balanced", "engine": "provider", "soft": 0.95}
    project.save()
    for number in range(40):
        worker.work(number, says=output(number))
        if any(map(begins_with_block, worker.history)):
            break
    assert any(map(begins_with_block, worker.history))
    worker.work(40)
    assert begins_with_block(claude.bodies[-1]["messages"][0])
    assert claude.bodies[-1]["messages"] == worker.history[-4:-2]
    [session] = AgentSession.objects.all()
    row = session.compactions.get(facts__has_key="iterations", facts__iterations__0__type="compaction")
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


class TestOnDemand:
    """Summaries on demand, for models that bind thinking to the prompt."""

    @pytest.fixture
    def api(self, api_key: str) -> Api:
        return Api(api_key)

    @pytest.fixture
    def claude(self, provider: Provider, project: Project) -> Claude:
        gateway_update(project=project, changes={"budget_tokens": 15_000})
        claude = Claude()
        provider.otherwise = claude.answer
        return claude

    @pytest.fixture
    def worker(self, gateway: Running, claude: Claude, api_key: str) -> Worker:
        return Worker(gateway, api_key)

    def test_thinking_survives_two_summaries_and_no_request_is_rejected(
        self, worker: Worker, claude: Claude, api: Api
    ) -> None:
        worker.work(0, says=output(0))
        memory = {"decisions": ["Use the staging bucket."]}
        assert api.patch("sessions/s/memory/", memory, if_match="*").status_code == 200
        calls = 1
        while len(claude.summarized) < 2 or claude.bodies[-1]["messages"][0] == claude.block(1):
            worker.work(calls, says=output(calls))
            calls += 1
        assert claude.rejected == []
        self._check_prompts(claude)
        [session] = AgentSession.objects.all()
        assert session.turn_count == calls
        done = list(session.compactions.filter(facts__on_demand=True).order_by("number"))
        assert [row.state for row in done] == ["done", "done"]
        assert {row.record["engine"] for row in done} == {"provider"}
        assert all(row.cost_microusd and row.tokens_after < row.tokens_before for row in done)
        assert [row.author for row in Recap.objects.filter(compaction__in=done)] == ["model", "model"]

    @staticmethod
    def _check_prompts(claude: Claude) -> None:
        """Expect the instructions, thinking after the block, and that prompts grow between two summaries."""
        first = claude.summarized[0]
        assert "Use the staging bucket." in first["compaction"]["instructions"]
        assert first["tools"] == claude.bodies[-1]["tools"]
        last = claude.bodies[-1]["messages"]
        assert last[0] == claude.block(2)
        assert [block["type"] for block in last[1]["content"]] == ["thinking", "tool_use"]
        changes = sum(
            later["messages"][: len(earlier["messages"])] != earlier["messages"]
            for earlier, later in pairwise(claude.bodies)
        )
        assert changes == len(claude.summarized) == 2

    @pytest.mark.parametrize(
        "reply",
        [
            Reply(status=529, parts=[b'{"type":"error","error":{"type":"overloaded_error"}}']),
            Reply(parts=[b'{"content":[],"stop_reason":"max_tokens","usage":{}}']),
            Reply(parts=[b"<html>"]),
            Reply(parts=[b" " * (2**22 + 1), b"{}"], go=threading.Event()),
        ],
        ids=["overloaded", "cut off", "not JSON", "endless"],
    )
    def test_without_a_summary_the_agent_continues(
        self, worker: Worker, claude: Claude, reply: Reply
    ) -> None:
        claude.replies = [reply]
        while not claude.summarized:
            worker.work(0, says=output(0))
        for _ in range(2):
            worker.work(0, says=output(0))
        assert claude.rejected == []
        assert len(claude.summarized) == 1
        [row] = AgentSession.objects.get().compactions.filter(facts__on_demand=True)
        assert row.state == "failed"
        assert row.reason

    def test_the_summary_is_readable_elsewhere_and_survives_a_change_of_the_engine(
        self, worker: Worker, claude: Claude, api: Api
    ) -> None:
        while not claude.bodies or not begins_with_block(claude.bodies[-1]["messages"][0]):
            worker.work(0, says=output(0))
        prompt = api.get("sessions/s/prompt/?format=openai").json()
        assert "Summary 1." in json.dumps(prompt["messages"])
        assert faults(prompt["messages"], "openai") == []
        [detail] = [
            api.get(f"sessions/s/compactions/{row.number}/").json()
            for row in AgentSession.objects.get().compactions.filter(facts__on_demand=True)
        ]
        assert detail["edits"][0]["text"].startswith("Decisions\n- Summary 1.")
        assert api.patch("sessions/s/", {"policy": "balanced"}).status_code == 200
        worker.work(0)
        assert claude.rejected == []
        assert claude.bodies[-1]["messages"][0] == claude.block(1)
        revert = api.post(f"sessions/s/compactions/{detail['number']}/revert/", {})
        assert revert.status_code == 200
        assert not begins_with_block(api.get("sessions/s/prompt/").json()["messages"][0])

    def test_a_summary_that_the_provider_rejects_later_is_not_sent_again(
        self,
        worker: Worker,
        claude: Claude,
        provider: Provider,
        api: Api,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(rejected_summary, "PAUSE_TURNS", 5)
        while not claude.bodies or not begins_with_block(claude.bodies[-1]["messages"][0]):
            worker.work(0, says=output(0))
        message = "messages.0.content.0: the signature of this compaction block has expired"
        error = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
        provider.script = [Reply(status=400, parts=[json.dumps(error).encode()])]
        with pytest.raises(Exception, match="expired"):
            worker.work(0, says=output(0))
        worker.gateway.settle()
        before = len(claude.bodies)
        for _ in range(3):
            worker.work(0, says=output(0))
        later = claude.bodies[before:]
        assert not any(begins_with_block(body["messages"][0]) for body in later)
        assert claude.rejected == []
        compactions = AgentSession.objects.get().compactions
        rejected = compactions.get(facts__on_demand=True)
        own = compactions.filter(trigger="hard", number__gt=rejected.number).earliest("number")
        assert (rejected.state, own.state) == ("reverted", "done")
        assert message in rejected.reason
        assert api.get("sessions/s/").json()["policy"]["engine"] == "own"
        for _ in range(4):  # then the provider compacts again
            worker.work(0, says=output(0))
        assert api.get("sessions/s/").json()["policy"]["engine"] == "provider"
        while not begins_with_block(claude.bodies[-1]["messages"][0]):
            worker.work(0, says=output(0))
        assert claude.rejected == []
