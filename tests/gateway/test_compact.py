"""Compact mode: the edits in force are spliced into the requests that agents send."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError, connection

from accounts.models import Project
from accounts.services.gateway import gateway_update
from compaction.capabilities import capabilities_of
from compaction.sizes.calibration import Calibration
from compaction.validation import validate
from gateway import app, compact
from gateway.calls import Call
from gateway.recording import recorder
from gateway.recording.record import call_record
from gateway.recording.recorder import StoreUnavailable
from sessions.models import AgentSession
from sessions.selectors.convert import message_body
from sessions.selectors.past_prompts.outline import outline_at
from sessions.selectors.past_prompts.rendering import past_prompt_json
from sessions.services.compactions.apply import session_compact
from sessions.services.compactions.revert import compaction_revert
from sessions.services.reconcile import served
from sessions.services.reconcile.served import NotServable, Reason, edits_for_request
from sessions.store.bodies import json_bytes
from tests.api.client import Api
from tests.gateway.anthropic_talk import request, streamed, text, tool_use
from tests.gateway.double import Provider, Received, Reply
from tests.gateway.openai_talk import chat_stream
from tests.gateway.running import PATIENCE, Response, Running

MESSAGES = "/anthropic/v1/messages?beta=true"
BUDGET = 12_000
MODEL = "claude-sonnet-5-5"
TOOLS = [{"name": "Bash", "description": "Runs a command.", "input_schema": {"type": "object"}}]
SYSTEM = [{"type": "text", "text": "You are a coder.", "cache_control": {"type": "ephemeral"}}]


@pytest.fixture
def project(project: Project) -> Project:
    gateway_update(project=project, changes={"mode": "compact", "budget_tokens": BUDGET})
    return project


class Agent:
    """A client that sends its whole history, with a cache breakpoint on its last message."""

    def __init__(self, gateway: Running, provider: Provider, key: str, **headers: str) -> None:
        self.gateway, self.provider = gateway, provider
        self.headers = {"x-contextapp-key": key, "x-api-key": "sk-ant", "x-session-id": "s"} | headers
        self.history: list[dict[str, Any]] = []
        self.tools, self.model = TOOLS, MODEL
        self.settles = True
        self.rejected = 0
        self.while_answering: Callable[[], None] | None = None

    def work(self, number: int, *, lines: int = 160, thinking: bool = False) -> Response:
        """Read a file: a call, its output, the next call."""
        call = tool_use(f"toolu_{number}", command=f"cat file_{number}.py")
        response = self.say(
            *([{"type": "thinking", "thinking": f"File {number}."}] if thinking else []), call
        )
        output = "\n".join(
            f"{number}.{line} def handler_{number}_{line}(): return {line}" for line in range(lines)
        )
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": output}
        self.history.append({"role": "user", "content": [result]})
        return response

    def say(self, *answer: dict[str, Any]) -> Response:
        if not self.history:
            self.history.append({"role": "user", "content": "Read all the files."})
        blocks = [dict(block) for block in answer]
        self.provider.otherwise = lambda received: self.answered(received, blocks)
        sent = json.loads(json.dumps(self.history))
        if isinstance(sent[-1]["content"], list):
            sent[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        fields = {"model": self.model, "tools": self.tools, "system": SYSTEM, "temperature": 1.0}
        response = self.gateway.call(MESSAGES, request(*sent, **fields), self.headers)
        assert response.status == 200, response.body
        self.history.append({"role": "assistant", "content": blocks})
        if self.settles:
            self.gateway.settle()
        return response

    def answered(self, received: Received, blocks: list[dict[str, Any]]) -> Reply:
        """Answer like a provider that counts tokens and verifies thinking according to rule A11."""
        body = json.loads(received.body)
        tools, messages = body["tools"], body["messages"]
        for index, message in enumerate(messages if capabilities_of(self.model).bound_thinking else ()):
            for block in message["content"] if isinstance(message["content"], list) else ():
                if block["type"] == "thinking" and block["signature"] != signature(tools, messages[:index]):
                    self.rejected += 1
                    return Reply(status=400, parts=[b"The block is bound to a different conversation"])
        for block in blocks:
            if block["type"] == "thinking":
                block["signature"] = signature(tools, messages)
        if self.while_answering is not None:
            changing = threading.Thread(target=self.while_answering)
            changing.start()
            changing.join()
            self.while_answering = None
        return streamed(*blocks, model=self.model, read=len(received.body) // 4)


def signature(tools: list[Any], messages: list[Any]) -> str:
    return hashlib.sha256("".join([json.dumps(tools), *map(plain, messages)]).encode()).hexdigest()


@pytest.fixture
def agent(gateway: Running, provider: Provider, api_key: str) -> Agent:
    return Agent(gateway, provider, api_key)


def forwarded(provider: Provider) -> Iterator[dict[str, Any]]:
    for received in provider.received:
        yield json.loads(received.body)


def shared(first: list[Any], second: list[Any]) -> int:
    """Return the number of leading messages that are equal except for cache breakpoints."""
    pairs = zip(map(plain, first), map(plain, second), strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def plain(message: Any) -> str:
    return json.dumps(message).replace(', "cache_control": {"type": "ephemeral"}', "")


@pytest.mark.slow
def test_a_session_stays_in_its_budget_and_its_prompts_share_their_prefix(
    agent: Agent, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the agent sends each request before the previous call is recorded, and compactions are slow."""

    def slow(**options: Any) -> Any:
        agent.gateway.advance(2 * PATIENCE)
        slow_ones.append(options["trigger"])
        return session_compact(**options)

    slow_ones: list[str] = []
    monkeypatch.setattr(served, "session_compact", slow)
    monkeypatch.setattr(compact, "COMPACTION_PATIENCE", 3 * PATIENCE)
    monkeypatch.setattr(app, "_RECORDING_PATIENCE", PATIENCE)
    agent.settles = False
    responses = [agent.work(number) for number in range(20)]
    agent.gateway.settle()
    assert slow_ones
    session = AgentSession.objects.get()
    bodies = list(forwarded(provider))
    stored = [message_body(row) for row in session.messages.select_related("blob").order_by("position")]
    assert [plain(message) for message in stored] == [plain(message) for message in agent.history[:-1]]
    assert session.compaction_count > 2
    breaks = [
        number
        for number, (old, new) in enumerate(pairwise(bodies))
        if shared(old["messages"], new["messages"]) < len(old["messages"])
    ]
    assert len(breaks) <= session.compaction_count
    sizes = [
        int(r.headers["x-contextapp"].rpartition("=")[2])
        for r in responses
        if "tokens_after" in str(r.headers)
    ]
    assert len(sizes) == len(responses) - 1
    assert max(sizes) <= BUDGET
    for body in bodies:
        assert validate(body["messages"], "anthropic", capabilities=capabilities_of(MODEL)) == ()
        assert json.dumps(body).count("cache_control") <= 4


@pytest.mark.slow
def test_the_list_of_skills_after_the_first_request_stays(agent: Agent, provider: Provider) -> None:
    skills = {"role": "system", "content": "These skills are available:\n- review: Reviews a change."}
    agent.history = [{"role": "user", "content": "Read all the files."}, skills]
    for number in range(8):
        agent.say(text(" ".join(f"Line {number}.{line} is wrong." for line in range(300))))
        agent.history.append({"role": "user", "content": "Go on."})
    bodies = list(forwarded(provider))
    assert "[Recap" in json.dumps(bodies[-1])
    session = AgentSession.objects.get()
    for turn, body in enumerate(bodies):
        place = body["messages"].index(skills)
        around = [message["role"] for message in body["messages"][place - 1 : place + 2]]
        assert around in (["user", "system"], ["user", "system", "assistant"])  # Anthropic rejects others
        outline = outline_at(session=session, index=turn)
        assert outline is not None
        seen = json.loads(json_bytes(past_prompt_json(session=session, outline=outline)))
        assert list(map(plain, seen["messages"])) == list(map(plain, body["messages"]))


@pytest.mark.slow
def test_only_the_messages_change_and_others_keep_their_bytes(agent: Agent, provider: Provider) -> None:
    for number in range(10):
        agent.work(number)
    before, after = agent.history[-1], provider.received[-1].body
    assert AgentSession.objects.get().compaction_count
    agent.say(text("Done."))
    body = provider.received[-1].body
    raw = request(*agent.history[:-1], model=MODEL, tools=TOOLS, system=SYSTEM, temperature=1.0)
    assert body.startswith(raw[: raw.index(b'"messages"')])
    assert body.endswith(raw[raw.index(b', "tools"') :])
    assert len(body) < len(raw)
    assert json.dumps(before["content"][0]["content"]).encode() in body
    assert after != body


@pytest.mark.slow
def test_thinking_is_never_sent_with_a_prompt_that_it_is_not_bound_to(
    agent: Agent, provider: Provider
) -> None:
    """The provider rejects thinking whose signature is not that of the messages before it (rule A11)."""
    for number in range(12):
        agent.work(number, thinking=True)
    assert AgentSession.objects.get().compaction_count
    assert agent.rejected == 0
    assert sum(b"thinking" in received.body for received in provider.received) > 10


@pytest.mark.slow
def test_a_session_that_alternates_models_is_compacted(agent: Agent) -> None:
    """Only one of them binds thinking to the prompt, so the edits of the other keep invalid thinking."""
    modes: list[str] = []
    for number in range(24):
        agent.model = MODEL if number % 8 > 5 else "claude-opus-4-5"
        modes.append(agent.work(number, thinking=True).headers["x-contextapp"])
    assert AgentSession.objects.get().compaction_count > 2
    assert all(mode.startswith("compact; ") for mode in modes[1:]), modes
    assert agent.rejected == 0


def revert_newest() -> None:
    session = AgentSession.objects.get()
    newest = session.compactions.filter(state="done").exclude(trigger="thinking").latest("number")
    compaction_revert(session=session, number=newest.number)
    connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("is_answering", [False, True])
def test_thinking_that_followed_a_reverted_compaction_is_not_sent(agent: Agent, is_answering: bool) -> None:
    for number in range(12):
        agent.work(number, thinking=True)
    if is_answering:
        agent.while_answering = revert_newest
    else:
        revert_newest()
    for number in range(12, 16):
        agent.work(number, thinking=True)
    assert agent.rejected == 0


@pytest.mark.slow
def test_a_request_without_edits_is_sent_again_without_thinking_that_is_bound_to_them(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> None:
        raise NotServable(Reason.BUSY)

    for number in range(12):
        agent.work(number, thinking=True)
    with monkeypatch.context() as patched:
        patched.setattr(compact, "edits_for_request", busy)
        response = agent.work(20, thinking=True)
    assert response.headers["x-contextapp"] == "passthrough; reason=busy; thinking=removed"
    assert agent.rejected == 1
    for number in range(21, 30):
        agent.work(number, thinking=True)
    assert agent.rejected == 1


@pytest.mark.slow
def test_thinking_is_removed_once_when_the_agent_changes_its_tools(agent: Agent) -> None:
    """Thinking is bound to the tools as well, even if nothing was compacted yet."""
    for number in range(3):
        agent.work(number, lines=2, thinking=True)
    agent.tools = [*TOOLS, {"name": "Search", "input_schema": {"type": "object"}}]
    changed = agent.work(3, lines=2, thinking=False)
    assert changed.headers["x-contextapp"].endswith("; thinking=removed")
    for number in range(4, 8):
        agent.work(number, lines=2, thinking=True)
    assert agent.rejected == 1
    [made] = AgentSession.objects.get().compactions.all()
    assert made.trigger == "thinking"


@pytest.mark.slow
def test_sessions_with_tools_of_the_provider_are_compacted(agent: Agent) -> None:
    result = {"type": "web_search_result", "url": "http://a", "title": "t", "encrypted_content": "e"}
    search = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [result]},
        {"type": "text", "text": "Found."},
    ]
    agent.say(*search)
    agent.history.append({"role": "user", "content": "Go on."})
    modes = [agent.work(number).headers["x-contextapp"] for number in range(12)]
    assert all(mode.startswith("compact; ") for mode in modes)
    assert int(modes[-1].rpartition("=")[2]) <= BUDGET
    assert AgentSession.objects.get().compaction_count > 0


@pytest.mark.slow
def test_a_session_with_blocks_of_unknown_kinds_is_compacted(agent: Agent, provider: Provider) -> None:
    """Providers add kinds at any time."""
    block = {"type": "hologram", "data": 1}
    agent.history = [{"role": "user", "content": [block]}]
    agent.say({"type": "text", "text": "I see."}, {"type": "projection", "of": block})
    agent.history.append({"role": "user", "content": [{"type": "text", "text": "Go on."}, block]})
    modes = [agent.work(number).headers["x-contextapp"] for number in range(10)]
    assert all(mode.startswith("compact; ") for mode in modes)
    assert int(modes[-1].rpartition("=")[2]) <= BUDGET
    session = AgentSession.objects.get()
    stored = [message_body(row) for row in session.messages.select_related("blob").order_by("position")]
    assert [plain(message) for message in stored] == [plain(message) for message in agent.history[:-1]]
    assert session.compaction_count > 0


@pytest.mark.slow
def test_tools_are_never_shed_because_they_are_forwarded(agent: Agent, provider: Provider) -> None:
    """Nothing fits beside these tools: elsewhere, the last resort would remove them."""
    names = " ".join(f"option_{number}" for number in range(3_600))
    agent.tools = [{**TOOLS[0], "description": names}]
    *_, last = [agent.work(number) for number in range(4)]
    assert all(body["tools"] == agent.tools for body in forwarded(provider))
    session = AgentSession.objects.get()
    assert session.shown_components["tools"] == session.context_components["tools"] > BUDGET
    assert int(last.headers["x-contextapp"].rpartition("=")[2]) > BUDGET


@pytest.mark.slow
def test_a_session_whose_policy_a_user_turned_off_is_not_compacted(agent: Agent, api: Api) -> None:
    agent.work(0)
    assert api.patch("sessions/s/", {"policy": {"preset": "off"}}).status_code == 200
    for number in range(1, 12):
        agent.work(number)
    assert AgentSession.objects.get().policy == {"preset": "off"}
    assert not AgentSession.objects.get().compactions.exists()


@pytest.mark.slow
def test_a_request_to_a_model_with_a_smaller_window_is_compacted(agent: Agent, project: Project) -> None:
    gateway_update(project=project, changes={"budget_tokens": None})
    for number in range(8):
        agent.work(number)
    assert not AgentSession.objects.get().compactions.exists()
    agent.model = "gpt-3.5-turbo"
    response = agent.work(8)
    assert response.headers["x-contextapp"].startswith("compact; ")
    assert int(response.headers["x-contextapp"].rpartition("=")[2]) <= 8_192
    assert AgentSession.objects.get().context_window == 16_385


@pytest.mark.slow
@pytest.mark.parametrize("calls", [1, 4, 8])
def test_a_rewind_is_compacted_like_the_requests_before_it(agent: Agent, calls: int) -> None:
    """The whole history may exceed the context window of the model."""
    for number in range(16):
        agent.work(number, thinking=True)
    for first in (20, 40):
        del agent.history[-2 * calls :]
        for number in range(first, first + calls + 1):
            response = agent.work(number, thinking=True)
            assert response.headers["x-contextapp"].startswith("compact; ")
            assert int(response.headers["x-contextapp"].rpartition("=")[2]) <= BUDGET
    assert agent.rejected == 0
    assert AgentSession.objects.exclude(forked_at=None).count() == 2


@pytest.mark.slow
def test_a_request_with_another_earlier_message_is_compacted_like_those_before_it(agent: Agent) -> None:
    """The whole history may exceed the context window of the model."""
    for number in range(16):
        agent.work(number)
    agent.history.insert(-4, {"role": "user", "content": "Be careful."})
    modes = [agent.work(number).headers["x-contextapp"] for number in range(16, 20)]
    assert all(mode.startswith("compact; ") for mode in modes), modes
    assert max(int(mode.rpartition("=")[2]) for mode in modes) <= BUDGET
    assert agent.rejected == 0


@pytest.mark.slow
def test_a_message_that_the_client_changed_in_place_is_compacted_too(
    agent: Agent, provider: Provider
) -> None:
    for number in range(16):
        agent.work(number)
    agent.history[-4]["content"][0]["content"] = "[cleared]"
    response = agent.work(16)
    assert response.headers["x-contextapp"].startswith("compact; ")
    assert b"[cleared]" in provider.received[-1].body
    assert AgentSession.objects.count() == 1


@pytest.mark.slow
def test_a_chat_session_is_compacted_too(
    gateway: Running, provider: Provider, api_key: str, project: Project
) -> None:
    history: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Read."},
    ]
    sent = {"x-contextapp-key": api_key, "authorization": "Bearer sk"}
    for number in range(12):
        name = f"call_{number}"
        call = {
            "id": name,
            "type": "function",
            "function": {"name": "read", "arguments": f'{{"n": {number}}}'},
        }
        answer = {"role": "assistant", "content": None, "tool_calls": [call]}
        provider.script = [chat_stream(answer, prompt=len(json.dumps(history)) // 4)]
        body = json.dumps({"model": "gpt-5", "stream": True, "messages": history}).encode()
        assert gateway.call("/openai/v1/chat/completions", body, sent).status == 200
        output = "\n".join(f"{number}.{line} def handler_{number}_{line}()" for line in range(180))
        history += [answer, {"role": "tool", "tool_call_id": name, "content": output}]
        gateway.settle()
    last = json.loads(provider.received[-1].body)["messages"]
    assert AgentSession.objects.get().compaction_count
    assert len(json.dumps(last)) < len(json.dumps(history)) * 0.7
    assert validate(last, "openai") == ()


class Outage:
    """Records calls, except while the store `is_down`."""

    is_down = False

    def __call__(self, call: Call) -> None:
        if self.is_down:
            raise StoreUnavailable("down")
        call_record(call)


class TestPassthrough:
    """The request is forwarded unchanged if the edits are unknown, and the reason is reported."""

    @pytest.mark.parametrize("reason", Reason)
    def test_the_guide_explains_every_reason(self, reason: Reason) -> None:
        guide = (Path(settings.BASE_DIR) / "docs" / "guides" / "gateway.md").read_text()
        rows = [line.split("|")[1] for line in guide.splitlines() if line.startswith("| `")]
        assert any(f"`{reason}`" in names for names in rows)

    def test_the_first_request_is_forwarded_unchanged(self, agent: Agent, provider: Provider) -> None:
        response = agent.say(text("Hi."))
        assert response.headers["x-contextapp"] == "passthrough; reason=new"
        assert provider.received[0].body == request(
            {"role": "user", "content": "Read all the files."},
            model=MODEL, tools=TOOLS, system=SYSTEM, temperature=1.0,
        )  # fmt: skip

    @pytest.mark.slow
    def test_a_rewritten_history_is_forwarded_unchanged(self, agent: Agent) -> None:
        for number in range(10):
            agent.work(number)
        del agent.history[6:]
        assert agent.say(text("Hi.")).headers["x-contextapp"] == "passthrough; reason=history"

    @pytest.mark.slow
    def test_a_subscription_is_forwarded_unchanged(
        self, gateway: Running, provider: Provider, api_key: str, project: Project
    ) -> None:
        agent = Agent(gateway, provider, api_key, authorization="Bearer sk-ant-oat01-x")
        for number in range(10):
            response = agent.work(number)
        assert response.headers["x-contextapp"] == "passthrough; reason=subscription"

    @pytest.mark.slow
    def test_a_request_in_observe_mode_is_forwarded_unchanged(self, agent: Agent) -> None:
        agent.headers["x-contextapp-mode"] = "observe"
        for number in range(10):
            response = agent.work(number)
        assert response.headers["x-contextapp"] == "observe"
        assert AgentSession.objects.get().compaction_count == 0
        agent.headers["x-contextapp-mode"] = "compact"
        for number in range(10, 14):
            response = agent.work(number)
        assert "compact" in response.headers["x-contextapp"]
        assert AgentSession.objects.get().compaction_count > 0


@pytest.mark.slow
def test_while_the_store_is_down_the_last_edits_stay_in_force(
    agent: Agent, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object, **__: object) -> None:
        raise OperationalError("the connection is closed")

    for number in range(10):
        agent.work(number)
    assert AgentSession.objects.get().compaction_count
    old = provider.received[-1]
    with monkeypatch.context() as patched:
        patched.setattr(compact, "edits_for_request", down)
        response = agent.work(10)
    assert response.headers["x-contextapp"].startswith("compact; ")
    new = provider.received[-1]
    assert shared(messages(old), messages(new)) == len(messages(old))


@pytest.mark.slow
def test_a_store_that_hangs_delays_no_call_and_the_last_edits_stay_in_force(
    agent: Agent, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for an agent that does not name its session, and if each of its edits was loaded late before."""
    is_released = threading.Event()

    def hang(*_: object, **__: object) -> None:
        is_released.wait(60)
        raise OperationalError("the connection is closed")

    agent.headers.pop("x-session-id")
    with Running(upstream=provider.url, spool=tmp_path / "other", patience=0.001) as agent.gateway:
        modes = [agent.work(number).headers["x-contextapp"] for number in range(12)]
        assert sum(mode.startswith("compact; ") for mode in modes) > 6
        assert AgentSession.objects.get().compaction_count
        old = provider.received[-1]
        with monkeypatch.context() as patched:
            patched.setattr(compact, "edits_for_request", hang)
            agent.settles = False
            late = threading.Timer(20, is_released.set)
            late.start()
            modes = [agent.work(number).headers["x-contextapp"] for number in range(12, 24)]
            assert not is_released.is_set()
            late.cancel()
            is_released.set()
    assert all(mode.startswith("compact; ") for mode in modes)
    assert shared(messages(old), messages(provider.received[-1])) == len(messages(old))


@pytest.mark.slow
def test_edits_that_are_ready_after_the_call_was_recorded_fork_nothing(
    agent: Agent, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_recorded, is_done = threading.Event(), threading.Event()

    def slow(*args: Any, **options: Any) -> Any:
        try:
            is_recorded.wait(60)
            return edits_for_request(*args, **options)
        finally:
            is_done.set()

    for number in range(10):
        agent.work(number)
    assert AgentSession.objects.get().compaction_count
    other = Running(upstream=provider.url, spool=tmp_path / "other", patience=0.01)
    with other as agent.gateway, monkeypatch.context() as patched:
        patched.setattr(compact, "edits_for_request", slow)
        response = agent.work(10)
        is_recorded.set()
        assert is_done.wait(60)
    assert response.headers["x-contextapp"] == "passthrough; reason=timeout"
    assert AgentSession.objects.get().turn_count == 11


@pytest.mark.slow
def test_thinking_of_answers_that_are_recorded_after_a_compaction_is_not_sent(
    provider: Provider, api_key: str, tmp_path: Path, transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Outage()
    monkeypatch.setattr(recorder, "_LONGEST_PAUSE", 0.02)
    with Running(upstream=provider.url, spool=tmp_path / "spool", write=write) as gateway:
        agent = Agent(gateway, provider, api_key)
        for number in range(26):
            write.is_down = number % 4 != 3
            agent.settles = not write.is_down
            agent.work(number, thinking=True)
        write.is_down = False
        gateway.settle()
    session = AgentSession.objects.get()
    assert (session.turn_count, agent.rejected) == (26, 0)
    assert session.compactions.filter(trigger="hard", state="done").exists()


@pytest.mark.slow
def test_calls_that_are_recorded_late_cause_no_further_compactions(
    provider: Provider,
    api: Api,
    api_key: str,
    tmp_path: Path,
    transactional_db: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No compaction can shorten messages that are not stored yet, and a reported size belongs to the prompt
    that was forwarded, not to the one that the session would serve now. So does the past prompt.
    """
    write = Outage()
    monkeypatch.setattr(recorder, "_LONGEST_PAUSE", 0.02)
    with Running(upstream=provider.url, spool=tmp_path / "spool", write=write) as gateway:
        agent = Agent(gateway, provider, api_key)
        for number in range(6):
            agent.work(number)
        write.is_down, agent.settles = True, False
        responses = [agent.work(number) for number in range(6, 12)]
        assert all(response.headers["x-contextapp"].startswith("compact; ") for response in responses)
        session = AgentSession.objects.get()
        assert session.compactions.count() <= 2
        write.is_down = False
        gateway.settle()
    session.refresh_from_db()
    assert session.turn_count == 12
    assert session.compaction_count <= 3
    calibration = Calibration.from_json(session.calibration)
    assert (calibration.reports, calibration.doubt) == (12, None)
    for turn, received in enumerate(provider.received[1:]):
        past = api.get(f"sessions/s/prompt/?at_turn={turn}").json()["messages"]
        assert list(map(plain, past[:-1])) == list(map(plain, messages(received)[:-1]))


def test_an_unexpected_error_does_not_fail_the_call(
    agent: Agent, provider: Provider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret content")

    agent.work(0)
    with monkeypatch.context() as patched:
        patched.setattr(compact, "edits_for_request", broken)
        response = agent.work(1)
    assert response.headers["x-contextapp"] == "passthrough; reason=error"
    assert len(messages(provider.received[-1])) == 3
    assert "RuntimeError" in caplog.text
    assert "secret content" not in caplog.text


def messages(received: Received) -> list[Any]:
    found: list[Any] = json.loads(received.body)["messages"]
    return found


def test_a_budget_in_a_header(gateway: Running, provider: Provider, api_key: str) -> None:
    agent = Agent(
        gateway, provider, api_key, **{"x-contextapp-budget": "30000", "x-contextapp-mode": "compact"}
    )
    agent.say(text("Hi."))
    assert AgentSession.objects.get().budget_tokens == 30_000
