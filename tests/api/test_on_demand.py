"""Summaries that Anthropic writes on demand, requested by an agent that pushes its turns over the API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from contextapp_client import ContextApp, NewSession, Session

from sessions.models import AgentSession, Recap
from tests.api.client import Api, code
from tests.gateway.claude import Claude
from tests.gateway.double import Provider

if TYPE_CHECKING:
    import anthropic

JSON = dict[str, Any]
BLOCK = {"type": "compaction", "content": "Facts\n- The parser is slow.", "signature": "EuYB"}
POLICY = {"preset": "balanced", "engine": "provider"}


@pytest.fixture
def claude() -> Iterator[tuple[Claude, anthropic.Anthropic]]:
    import anthropic  # takes a second, even in runs that do not include this test

    claude = Claude()
    with Provider() as provider:
        provider.otherwise = claude.answer
        yield claude, anthropic.Anthropic(api_key="sk", base_url=provider.url, max_retries=0)


class Agent:
    """An agent with the SDKs of Anthropic and contextapp. It does what the prompt says."""

    def __init__(self, session: Session, provider: anthropic.Anthropic) -> None:
        self.session, self.provider = session, provider

    def start(self) -> None:
        self.session.push([{"role": "user", "content": "Read the files."}], model="claude-opus-5-5")

    def step(self, number: int) -> None:
        prompt = self.session.prompt()
        fields: JSON = {"model": "claude-opus-5-5", "max_tokens": 50, "thinking": {"type": "adaptive"}}
        if prompt.summary_request is not None:
            summary = self.provider.beta.messages.create(**fields, **prompt.summary_params)
            self.session.record_summary(prompt, summary.to_dict())
            prompt = self.session.prompt()
        with self.provider.beta.messages.stream(**fields, **prompt.params) as answer:
            message = answer.get_final_message().to_dict()
        call = message["content"][-1]
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": "Done."}
        more = {"type": "text", "text": f"handler_{number} is in module_{number}. " * 300}
        self.session.push(
            [
                {"role": "assistant", "content": message["content"]},
                {"role": "user", "content": [result, more]},
            ],
            usage=message["usage"],
            model="claude-opus-5-5",
        )


@pytest.mark.processes
def test_an_agent_that_follows_the_prompt_keeps_its_thinking(
    served_url: str, api_key: str, claude: tuple[Claude, anthropic.Anthropic]
) -> None:
    double, provider = claude
    new = NewSession(
        model="claude-opus-5-5", format="anthropic", policy=POLICY, budget={"input_tokens": 20_000}
    )
    with ContextApp(served_url, api_key) as client:
        session = client.session("s1", create=new)
        agent = Agent(session, provider)
        agent.start()
        for number in range(16):
            agent.step(number)
    assert double.rejected == []
    assert len(double.summarized) >= 1
    last = double.bodies[-1]["messages"]
    assert last[0] == double.block(len(double.summarized))
    assert any(block["type"] == "thinking" for block in last[1]["content"])
    rows = AgentSession.objects.get().compactions.filter(facts__on_demand=True)
    assert [row.state for row in rows] == ["done"] * len(double.summarized)
    assert Recap.objects.filter(compaction__in=rows).count() == len(double.summarized)


@pytest.fixture
def full(api: Api) -> Api:
    """The session `s1`, whose prompt has reached the threshold."""
    body = {"id": "s1", "model": "claude-opus-5-5", "budget": {"input_tokens": 5_000}, "policy": POLICY}
    assert api.post("sessions/", body | {"format": "anthropic"}).status_code == 201
    messages: list[JSON] = [{"role": "user", "content": "Question"}]
    for number in range(5):
        usage = {"input_tokens": 1_200 * (number + 1), "output_tokens": 20}
        assert api.post("sessions/s1/turns/", {"messages": messages, "usage": usage}).status_code == 201
        said = [{"type": "text", "text": f"Answer {number}. " * 100}]
        messages = [{"role": "assistant", "content": said}, {"role": "user", "content": f"And {number}?"}]
    return api


def requested(api: Api) -> JSON:
    found: JSON = api.get("sessions/s1/prompt/").json()["summary_request"]
    return found


def test_the_summary_replaces_exactly_the_messages_that_were_sent(full: Api) -> None:
    request, before = requested(full), full.get("sessions/s1/prompt/").json()["messages"]
    body = {"before": request["before"], "content": [BLOCK], "stop_reason": "compaction"}
    etag = full.get("sessions/s1/prompt/")["ETag"]
    recorded = full.post("sessions/s1/compactions/", body)
    assert recorded.status_code == 201, recorded.content
    assert recorded.json()["recap"] is None or "parser" in recorded.json()["recap"]
    after = full.get("sessions/s1/prompt/")
    assert after["ETag"] != etag
    prompt = after.json()
    assert prompt["messages"][0] == {"role": "assistant", "content": [BLOCK]}
    assert prompt["messages"][1 : 1 + len(before[request["messages"] :])] == before[request["messages"] :]
    assert "compact-2026-09-04" in prompt["betas"]
    assert "compact_20260112" not in str(prompt["context_management"])
    assert "summary_request" not in prompt


def test_without_a_summary_the_prompt_stays_the_same(full: Api) -> None:
    request, before = requested(full), full.get("sessions/s1/prompt/").json()["messages"]
    usage = {"iterations": [{"type": "compaction", "input_tokens": 900, "output_tokens": 10}]}
    body = {"before": request["before"], "content": [], "stop_reason": "max_tokens", "usage": usage}
    recorded = full.post("sessions/s1/compactions/", body).json()
    assert (recorded["state"], recorded["reason"]) == (
        "failed", "the provider returned no summary (max_tokens)",
    )  # fmt: skip
    assert recorded["cost_microusd"] > 0
    assert full.post("sessions/s1/compactions/", body).json() == recorded
    other = full.post("sessions/s1/compactions/", body | {"stop_reason": "end_turn"}).json()
    assert other["number"] == recorded["number"] + 1
    prompt = full.get("sessions/s1/prompt/").json()
    assert prompt["messages"] == before
    assert "summary_request" not in prompt


def test_a_summary_with_a_secret_is_not_stored(full: Api) -> None:
    block = BLOCK | {"content": "The key is ghp_" + "a1B2" * 9}
    body = {"before": requested(full)["before"], "content": [block], "stop_reason": "compaction"}
    recorded = full.post("sessions/s1/compactions/", body).json()
    assert (recorded["state"], recorded["reason"]) == ("failed", "the summary contains a secret")
    assert "ghp_" not in str(full.get("sessions/s1/compactions/").json())


@pytest.mark.parametrize("before", [2, 4, 99])
def test_a_summary_of_other_messages_is_rejected(full: Api, before: int) -> None:
    body = {"before": before, "content": [BLOCK], "stop_reason": "compaction"}
    response = full.post("sessions/s1/compactions/", body)
    assert (response.status_code, code(response)) == (409, "not_replaceable")


def test_other_models_get_no_request(full: Api) -> None:
    assert full.patch("sessions/s1/", {"policy": "balanced"}).status_code == 200
    assert "summary_request" not in full.get("sessions/s1/prompt/").json()
