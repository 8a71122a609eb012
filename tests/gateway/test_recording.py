"""Recording of calls: sessions, turns, usage and failures."""

from __future__ import annotations

import gzip
import http.client
import json
import threading
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import DEFAULT, Mock

import pytest
import zstandard
from django.core.files.storage import storages
from django.db import OperationalError
from django.utils import timezone

from accounts.models import ApiKey, Project
from accounts.services.api_keys import api_key_create
from contextapp.blob_storage import blob_storage
from sessions.models import AgentSession, Message, Turn
from sessions.selectors.convert import message_body
from tests.api.test_redaction import everything_stored
from tests.api.test_secret_fields import Secrets
from tests.gateway.anthropic_talk import STREAM, event, request, stream, streamed, text, tool_use, whole
from tests.gateway.double import Provider, Reply
from tests.gateway.openai_talk import chat_stream, chat_whole, reasoned, responses_whole, said
from tests.gateway.running import PATIENCE, Running

MESSAGES = "/anthropic/v1/messages?beta=true"
CHAT = "/openai/v1/chat/completions"
SESSION = "3f8e2c1a-9b4d-4e6f-8a2b-1c3d5e7f9a0b"
TOOLS = [{"name": "Bash", "description": "Runs a command.", "input_schema": {"type": "object"}}]

History = list[dict[str, Any]]


def user(words: str) -> dict[str, Any]:
    return {"role": "user", "content": words}


def result(id: str, output: str, **fields: Any) -> dict[str, Any]:
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": id, "content": output, **fields}],
    }


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def stored(session: AgentSession) -> History:
    return [message_body(row) for row in session.messages.select_related("blob").order_by("position")]


class Agent:
    """A client that stores its history, like Claude Code."""

    def __init__(self, gateway: Running, provider: Provider, key: str, **headers: str) -> None:
        self.gateway, self.provider = gateway, provider
        self.headers = {"x-contextapp-key": key, "x-api-key": "sk-ant-secret"}
        self.headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        self.history: History = []

    def say(
        self, message: dict[str, Any], *answer: dict[str, Any], stream: bool = True, **fields: Any
    ) -> None:
        self.history.append(message)
        self.provider.script = [streamed(*answer) if stream else whole(*answer)]
        body = request(*self.history, **{"tools": TOOLS, "system": "You are a coder.", **fields})
        response = self.gateway.call(MESSAGES, body, self.headers)
        assert response.status == 200, response.body
        self.history.append(assistant(*answer))
        self.gateway.settle()


@pytest.fixture
def agent(gateway: Running, provider: Provider, api_key: str) -> Agent:
    return Agent(
        gateway, provider, api_key, x_claude_code_session_id=SESSION, user_agent="claude-cli/2.1.197"
    )


THINKING = {"type": "thinking", "thinking": "Größe zählt – 日本.", "signature": "c2lnbmF0dXJl"}


@pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "json"])
def test_a_session_is_recorded_as_the_client_has_it(agent: Agent, is_stream: bool) -> None:
    agent.say(
        user("List the files."), THINKING, text("I look."), tool_use("t1", command="ls"), stream=is_stream
    )
    agent.say(result("t1", "a.py\nb.py"), text("There are two: a.py and b.py."), stream=is_stream)
    session = AgentSession.objects.get()
    assert stored(session) == agent.history
    assert (session.external_id, session.agent, session.origin) == (SESSION, "claude-code", "gateway")
    assert (session.title, session.model, session.format) == (
        "List the files.",
        "claude-sonnet-4-5",
        "anthropic",
    )
    turns = list(session.turns.order_by("index"))
    assert [turn.message_count for turn in turns] == [2, 2]
    usage = [(t.uncached_tokens, t.cache_write_tokens, t.cache_read_tokens, t.output_tokens) for t in turns]
    assert usage == [(12, 300, 4_000, 57)] * 2
    assert turns[0].cost_microusd
    [preamble] = session.preambles.all()
    assert (preamble.system, session.preamble_version) == (b'"You are a coder."', 1)


def test_the_response_names_the_session(agent: Agent, gateway: Running, provider: Provider) -> None:
    provider.script = [streamed(text("Hello."))]
    response = gateway.call(MESSAGES, request(user("Hi."), tools=TOOLS), agent.headers)
    assert response.headers["x-contextapp-session"] == SESSION


@pytest.mark.slow
def test_nothing_is_compacted_in_observe_mode(agent: Agent) -> None:
    for number in range(6):
        agent.say(user(f"{number}: " + "word " * 40_000), text("Read."))
    session = AgentSession.objects.get()
    assert session.compaction_count == 0
    assert stored(session) == agent.history


def test_cache_breakpoints_that_move_and_thinking_that_is_stripped_append(agent: Agent) -> None:
    agent.say(user("List the files."), THINKING, tool_use("t1", command="ls"))
    agent.history[1]["content"].pop(0)
    agent.history[0] = {
        "role": "user",
        "content": [{"type": "text", "text": "List the files.", "cache_control": {"type": "ephemeral"}}],
    }
    agent.say(result("t1", "a.py", cache_control={"type": "ephemeral"}), text("One."))
    session = AgentSession.objects.get()
    assert session.message_count == 4
    assert stored(session)[1]["content"][0] == THINKING


@pytest.mark.slow
def test_a_rewind_forks_and_the_fork_goes_on(agent: Agent) -> None:
    agent.say(user("List the files."), text("a.py"))
    agent.say(user("Delete them."), text("Done."))
    agent.history = agent.history[:2]
    agent.say(user("Keep them."), text("As you like."))
    agent.say(user("Thanks."), text("Welcome."))
    fork = AgentSession.objects.get(forked_at=2)
    assert stored(fork) == agent.history
    assert AgentSession.objects.count() == 2
    assert fork.parent is not None
    assert fork.parent.external_id == SESSION


def test_other_conversations_with_the_same_session_id_are_its_children(agent: Agent) -> None:
    for question in ("List the files.", "Which tests fail?", "Who wrote a.py?"):
        agent.history = []
        agent.say(user(question), text("None."))
    root, *others = AgentSession.objects.order_by("started_at")
    assert {other.parent for other in others} == {root}
    assert [each.title for each in (root, *others)] == [
        "List the files.", "Which tests fail?", "Who wrote a.py?",
    ]  # fmt: skip


@pytest.mark.slow
def test_another_conversation_is_named_after_its_request_once_it_continues(agent: Agent) -> None:
    for number in range(4):
        agent.say(user(f"List the files of folder {number}."), text("None."))
    agent.history = []
    agent.say(user("Which tests fail?"), text("None."))
    agent.say(user("Are you sure?"), text("Yes."))
    [child] = AgentSession.objects.exclude(parent=None)
    assert (child.title, child.turn_count) == ("Which tests fail?", 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "instead"),
    [
        ([user("Delete a.py?")], [user("Delete b.py?")]),
        ([user("Delete a.py?"), user("It is 9:41.")], [user("Delete a.py?")]),
        ([user("Why?"), assistant(text("Old.")), user("Delete a.py?")], [user("Delete a.py?")]),
    ],
    ids=["edited", "shorter", "earlier"],
)
def test_another_question_with_the_same_answer_forks(agent: Agent, asked: History, instead: History) -> None:
    agent.say(user("Clean up."), text("What?"))
    first = [*agent.history]
    agent.history += asked[:-1]
    agent.say(asked[-1], text("Yes."))
    trunk, agent.history = [*agent.history], [*first, *instead[:-1]]
    agent.say(instead[-1], text("Yes."))
    agent.say(user("Thanks."), text("Welcome."))
    root, fork = AgentSession.objects.order_by("created_at")
    assert (stored(root), stored(fork)) == (trunk, agent.history)
    assert fork.turns.filter(billed=True).count() == 2


@pytest.mark.slow
def test_sub_agents_become_child_sessions(
    agent: Agent, gateway: Running, provider: Provider, api_key: str
) -> None:
    agent.say(user("Explore the project."), tool_use("t1", prompt="look"))
    helper = Agent(gateway, provider, api_key, x_claude_code_session_id=SESSION, x_claude_code_agent_id="a7")
    helper.say(user("Look around."), text("Nothing here."))
    agent.say(result("t1", "Nothing here."), text("It is empty."))
    main = AgentSession.objects.get(external_id=SESSION)
    child = AgentSession.objects.get(external_id=f"{SESSION}/a7")
    assert child.parent == main
    assert (stored(main), stored(child)) == (agent.history, helper.history)


@pytest.mark.slow
def test_side_requests_are_kept_apart(agent: Agent) -> None:
    main = agent.history
    agent.history = []
    agent.say(
        user("Write a title."), text("Files"), tools=[], max_tokens=20
    )  # before the conversation itself
    agent.history = main
    agent.say(user("List the files."), text("a.py"))
    agent.say(user("And now?"), text("Nothing."))
    agent.history.append(user("[SUGGESTION MODE: What could the user say next?]"))
    agent.say(agent.history.pop(), text("Delete it."))
    del agent.history[-2:]
    agent.say(user("Bye."), text("Bye."))
    session = AgentSession.objects.get(external_id=SESSION)
    assert stored(session) == agent.history
    assert session.title == "List the files."
    beside = AgentSession.objects.filter(parent=session)
    assert (beside.count(), beside.filter(forked_at=None).count()) == (2, 2)
    assert sum(Turn.objects.values_list("output_tokens", flat=True)) == 57 * 5


@pytest.mark.slow
def test_titles_and_sub_agents_of_opencode(gateway: Running, provider: Provider, api_key: str) -> None:
    """OpenCode requests the title in the session that it is for, and names the parent of a sub-agent."""
    names = {"user_agent": "opencode/1.18.33 ai-sdk/provider-utils/4.0.46", "x_session_id": "ses_main"}
    title = Agent(gateway, provider, api_key, **names)
    title.say(user("Generate a title for this conversation:"), text("Files"), tools=[])
    agent = Agent(gateway, provider, api_key, **names)
    agent.say(user("Explore the project."), tool_use("t1", prompt="look"))
    names |= {"x_session_id": "ses_helper", "x_parent_session_id": "ses_main"}
    helper = Agent(gateway, provider, api_key, **names)
    helper.say(user("Look around."), text("Nothing here."))
    agent.say(result("t1", "Nothing here."), text("It is empty."))
    main, child = (AgentSession.objects.get(external_id=name) for name in ("ses_main", "ses_helper"))
    assert (stored(main), stored(child)) == (agent.history, helper.history)
    assert (main.title, main.parent, child.parent) == ("Explore the project.", None, main)
    assert AgentSession.objects.exclude(pk__in=(main.pk, child.pk)).get().parent == main


def test_the_title_is_not_the_context_that_the_client_inserts(agent: Agent) -> None:
    context = (
        "This is the Qwen Code. We are setting up the context for our chat.\nMy operating system is: linux"
    )
    agent.history = [user(context), assistant(text("Got it. Thanks for the context!"))]
    agent.say(user("List the files."), text("a.py"))
    assert AgentSession.objects.get().title == "List the files."


@pytest.mark.slow
def test_the_clients_compaction_is_a_marker(agent: Agent) -> None:
    agent.say(user("List the files."), text("a.py"))
    agent.say(user("Read it."), text("It is empty."))
    agent.history = []
    summary = (
        "This session is being continued from a previous conversation that ran out of context. We read a.py."
    )
    agent.say(user(summary), text("Going on."))
    session = AgentSession.objects.get()
    assert session.message_count == 6
    assert session.turns.get(index=2).client_compaction is not None


class TestIdentity:
    @pytest.mark.slow
    def test_without_an_id_the_history_identifies_the_session(
        self, gateway: Running, provider: Provider, api_key: str
    ) -> None:
        agents = [Agent(gateway, provider, api_key) for _ in range(2)]
        agents[0].say(user("Same beginning."), text("One."))
        agents[1].say(user("Same beginning."), text("Two."))
        for agent in agents:
            agent.say(user("Go on."), text("Done."))
        found = {json.dumps(stored(session)) for session in AgentSession.objects.all()}
        assert found == {json.dumps(agent.history) for agent in agents}

    @pytest.mark.slow
    def test_another_key_of_the_project_does_not_continue_it(
        self, gateway: Running, provider: Provider, api_key: str, project: Project
    ) -> None:
        other = api_key_create(project=project, name="other")[1]
        for key in (api_key, other):
            named = Agent(gateway, provider, key, x_session_id="shared")
            named.say(user("Hi."), text("Hello."))
            unnamed = Agent(gateway, provider, key)
            unnamed.say(user("Other words."), text("Hello."))
        assert AgentSession.objects.count() == 4
        prefix = ApiKey.objects.get(name="other").prefix
        assert set(
            AgentSession.objects.filter(external_id__startswith="shared").values_list(
                "external_id", flat=True
            )
        ) == {
            "shared",
            f"shared@{prefix}",
        }

    @pytest.mark.slow
    def test_another_project_reaches_nothing_with_the_same_id(
        self, agent: Agent, gateway: Running, provider: Provider, stranger_api_key: str, project: Project
    ) -> None:
        agent.say(user("A secret plan."), text("Noted."))
        stranger = Agent(gateway, provider, stranger_api_key, x_claude_code_session_id=SESSION)
        stranger.say(user("What was the plan?"), text("No idea."))
        mine = AgentSession.objects.get(project=project)
        theirs = AgentSession.objects.exclude(project=project).get()
        assert (stored(mine), stored(theirs)) == (agent.history, stranger.history)

    @pytest.mark.parametrize(
        "user_id",
        [
            f"user_{'a' * 64}_account_{SESSION}_session_{SESSION}",
            json.dumps({"device_id": "d", "account_uuid": "", "session_id": SESSION}),
        ],
    )
    def test_metadata_names_the_session(
        self, gateway: Running, provider: Provider, api_key: str, user_id: str
    ) -> None:
        agent = Agent(gateway, provider, api_key)
        agent.say(user("Hi."), text("Hello."), metadata={"user_id": user_id})
        assert AgentSession.objects.get().external_id == SESSION


class TestChat:
    @pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "json"])
    def test_a_session_of_chat_completions(
        self, gateway: Running, provider: Provider, api_key: str, is_stream: bool
    ) -> None:
        calls = [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}]
        answers: History = [
            {"role": "assistant", "content": "I look.", "tool_calls": calls},
            {"role": "assistant", "content": "Two files: Größe.txt – 日本.txt"},
        ]
        history: History = [{"role": "system", "content": "You are a coder."}, user("List the files.")]
        for answer in answers:
            provider.script = [chat_stream(answer) if is_stream else chat_whole(answer)]
            body = json.dumps({"model": "gpt-5", "stream": is_stream, "messages": history}).encode()
            response = gateway.call(CHAT, body, {"x-contextapp-key": api_key, "authorization": "Bearer sk"})
            assert response.status == 200
            history.append({**answer, "refusal": None})
            if answer.get("tool_calls"):
                history.append({"role": "tool", "tool_call_id": "c1", "content": "a b"})
            gateway.settle()
        session = AgentSession.objects.get()
        assert [{**message, "refusal": None} for message in stored(session)] == [
            {**message, "refusal": None} for message in history
        ]
        turn = session.turns.get(index=1)
        assert (turn.uncached_tokens, turn.cache_read_tokens, turn.output_tokens) == (100, 900, 20)
        assert (session.format, session.model) == ("openai", "gpt-5")

    def test_a_usage_in_an_unknown_format_is_not_recorded_as_zero(
        self, gateway: Running, provider: Provider, api_key: str
    ) -> None:
        answer = json.loads(chat_whole({"role": "assistant", "content": "Hello."}).parts[0])
        answer["usage"] = {"promptUnits": 7}
        provider.script = [Reply(parts=[json.dumps(answer).encode()])]
        body = json.dumps({"model": "gpt-5", "messages": [user("Hi.")]}).encode()
        gateway.call(CHAT, body, {"x-contextapp-key": api_key, "authorization": "Bearer sk"})
        gateway.settle()
        assert AgentSession.objects.get().turns.get().prompt_reported is None

    def test_without_usage_the_answer_is_recorded_all_the_same(
        self, gateway: Running, provider: Provider, api_key: str
    ) -> None:
        provider.script = [chat_stream({"role": "assistant", "content": "Hello."}, usage=False)]
        body = json.dumps({"model": "gpt-5", "stream": True, "messages": [user("Hi.")]}).encode()
        gateway.call(CHAT, body, {"x-contextapp-key": api_key, "authorization": "Bearer sk"})
        gateway.settle()
        assert stored(AgentSession.objects.get())[1]["content"] == "Hello."


class TestFailures:
    def test_an_error_leaves_no_trace_and_its_retry_is_recorded_once(
        self, agent: Agent, gateway: Running, provider: Provider
    ) -> None:
        provider.script = [Reply(status=529, parts=[b'{"type":"error"}'])]
        gateway.call(MESSAGES, request(user("List the files."), tools=TOOLS), agent.headers)
        agent.say(user("List the files."), text("a.py"))
        assert stored(AgentSession.objects.get()) == agent.history

    def test_a_call_that_cannot_be_recorded_leaves_no_trace(self, agent: Agent, provider: Provider) -> None:
        provider.script = [whole(text("Hi."))]
        body = json.dumps({"model": "claude-x", "messages": "no list"}).encode()
        assert agent.gateway.call(MESSAGES, body, agent.headers).status == 200
        agent.gateway.settle()
        assert not AgentSession.objects.exists()

    def test_a_stream_that_ends_in_an_error_is_an_interrupted_turn(
        self, agent: Agent, gateway: Running, provider: Provider
    ) -> None:
        error = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
        provider.script = [Reply(headers=STREAM, parts=[*stream(text("Two fi"))[:5], error])]
        gateway.call(MESSAGES, request(user("List the files."), tools=TOOLS), agent.headers)
        gateway.settle()
        session = AgentSession.objects.get()
        assert stored(session) == [user("List the files.")]
        assert session.turns.get().cache_read_tokens == 4_000
        agent.say(user("List the files."), text("a.py"))
        assert stored(session) == agent.history

    def test_a_disconnect_is_an_interrupted_turn(
        self, agent: Agent, gateway: Running, provider: Provider
    ) -> None:
        provider.script = [Reply(headers=STREAM, parts=stream(text("Nobody listens")), go=threading.Event())]
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE)
        body = request(user("List the files."), tools=TOOLS)
        connection.request("POST", f"/gateway{MESSAGES}", body, agent.headers)
        response = connection.getresponse()
        response.read1(10)
        response.close()
        connection.close()
        assert provider.cancelled.wait(PATIENCE)
        while not Turn.objects.exists():
            gateway.settle()
        assert Turn.objects.get().uncached_tokens == 12

    @pytest.mark.parametrize("field", ["revoked_at", "expires_at"])
    def test_a_call_is_recorded_if_its_key_ends_meanwhile(
        self, agent: Agent, gateway: Running, provider: Provider, field: str
    ) -> None:
        go = threading.Event()
        provider.script = [Reply(headers=STREAM, parts=stream(text("Hello.")), go=go)]
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE)
        connection.request("POST", f"/gateway{MESSAGES}", request(user("Hi."), tools=TOOLS), agent.headers)
        response = connection.getresponse()
        response.read1(10)
        ApiKey.objects.update(**{field: timezone.now()})
        go.set()
        response.read()
        connection.close()
        gateway.settle()
        assert stored(AgentSession.objects.get()) == [user("Hi."), assistant(text("Hello."))]

    @pytest.mark.parametrize("field", ["revoked_at", "expires_at"])
    def test_a_call_is_not_recorded_if_its_key_ended_before(
        self, agent: Agent, monkeypatch: pytest.MonkeyPatch, field: str
    ) -> None:
        agent.say(user("Hi."), text("Hello."))
        monkeypatch.setattr("gateway.callers.api_key_find", Mock(side_effect=OperationalError))
        ApiKey.objects.update(**{field: timezone.now() - timedelta(hours=1)})
        agent.say(user("Go on."), text("Done."))  # the store is down, so the gateway cannot check the key
        assert Turn.objects.count() == 1

    def test_a_call_that_waited_has_its_own_time_and_price(
        self, agent: Agent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Calls wait while the database is unavailable, perhaps until the next day."""
        called = timezone.now() - timedelta(days=2)
        price = {"uncached": 7_000_000, "cache_read": 0, "cache_write": 0, "output": 0}
        day = f"{called.date()}"
        dated = {"model": "claude-sonnet-4-5", "first": day, "last": day, **price}
        Project.objects.update(custom_prices=[dated])
        clock = SimpleNamespace(time=called.timestamp, monotonic=time.monotonic)
        monkeypatch.setattr("gateway.app.time", clock)
        agent.say(user("Hi."), text("Hello."))
        session, turn = AgentSession.objects.get(), Turn.objects.get()
        assert called <= turn.at < called + timedelta(hours=1)
        assert (session.started_at, turn.cost_microusd) == (turn.at, 84)

    def test_a_call_waits_while_object_storage_is_unavailable(
        self, agent: Agent, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CONTEXTAPP_BLOB_STORAGE", "file")
        monkeypatch.setenv("CONTEXTAPP_BLOB_FOLDER", str(tmp_path / "blobs"))
        settings.STORAGES = settings.STORAGES | blob_storage()
        save = Mock(wraps=storages["blobs"].save, side_effect=[OSError("no response"), DEFAULT])
        monkeypatch.setattr(storages["blobs"], "save", save)
        agent.say(user("word " * 5_000), text("Hello."))
        assert stored(AgentSession.objects.get()) == agent.history

    def test_a_client_that_leaves_after_the_last_event_missed_nothing(
        self, agent: Agent, gateway: Running, provider: Provider
    ) -> None:
        parts = stream(text("Done."))
        provider.script = [Reply(headers=STREAM, parts=[b"".join(parts), b": bye\n\n"], go=threading.Event())]
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE)
        connection.request("POST", f"/gateway{MESSAGES}", request(user("Hi."), tools=TOOLS), agent.headers)
        response = connection.getresponse()
        while b"message_stop" not in response.peek(65_536):
            pass
        response.close()
        connection.close()
        while not Turn.objects.exists():
            gateway.settle()
        assert stored(AgentSession.objects.get()) == [user("Hi."), assistant(text("Done."))]

    @pytest.mark.slow
    def test_a_call_whose_response_is_too_large_is_forwarded_but_not_recorded(
        self, agent: Agent, gateway: Running, provider: Provider
    ) -> None:
        provider.script = [Reply(parts=[b" " * 2**20] * 65)]
        response = gateway.call(MESSAGES, request(user("Hi."), tools=TOOLS), agent.headers)
        assert len(response.body) == 65 * 2**20
        gateway.settle()
        assert not AgentSession.objects.exists()

    @pytest.mark.parametrize(("value", "recorded"), [("1", 0), ("true", 0), ("0", 1), ("False", 1), ("", 1)])
    def test_a_call_with_the_bypass_header_is_not_recorded(
        self, agent: Agent, value: str, recorded: int
    ) -> None:
        agent.headers["x-contextapp-bypass"] = value
        agent.say(user("Hi."), text("Hello."))
        assert AgentSession.objects.count() == recorded


def zstd_frames(data: bytes) -> bytes:
    return zstandard.compress(data[:50]) + zstandard.compress(data[50:])


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [("gzip", gzip.compress), ("zstd", zstandard.compress), ("zstd", zstd_frames)],
    ids=["gzip", "zstd", "zstd-frames"],
)
def test_compressed_calls_are_recorded(
    gateway: Running, provider: Provider, api_key: str, encoding: str, encode: Any
) -> None:
    parts = stream(text("Hello."))
    provider.script = [
        Reply(headers=[*STREAM, (b"content-encoding", encoding.encode())], parts=[encode(b"".join(parts))])
    ]
    sent = {"x-contextapp-key": api_key, "x-api-key": "sk", "content-encoding": encoding}
    gateway.call(MESSAGES, encode(request(user("Hi."))), sent)
    gateway.settle()
    assert stored(AgentSession.objects.get()) == [user("Hi."), assistant(text("Hello."))]


def test_secrets_are_redacted_in_the_store_only(agent: Agent, provider: Provider) -> None:
    """Secrets may also be in names: of the session, the agent, the model, the request and the response."""
    secrets = Secrets()
    agent.headers["x-claude-code-session-id"] = secrets.new("session")
    agent.headers["x-claude-code-agent-id"] = secrets.new("agent")
    words = secrets.new("message")
    for number in range(2):
        agent.history.append(user(f"The key is {words}."))
        parts = stream(text(f"Noted: {secrets.new(f'answer {number}')}"), model=secrets.new("model"))
        parts[0] = parts[0].replace(b"msg_", secrets.new(f"response {number}").encode())
        request_id = (b"request-id", secrets.new(f"request {number}").encode())
        provider.script = [Reply(headers=[*STREAM[:1], request_id], parts=parts)]
        agent.gateway.call(MESSAGES, request(*agent.history, tools=TOOLS), agent.headers)
        agent.history.append(assistant(text(f"Noted: {secrets.new(f'answer {number}')}")))
        agent.gateway.settle()
    assert words in provider.received[0].body.decode()
    assert secrets.found_in(everything_stored()) == set()
    assert sorted(session.turn_count for session in AgentSession.objects.all()) == [0, 2]
    assert Message.objects.count() == 4


def test_reasoning_that_begins_later_continues_the_session(
    gateway: Running, provider: Provider, api_key: str
) -> None:
    """The first answer has no reasoning, but the client requests to have it back."""
    headers = {"x-contextapp-key": api_key, "authorization": "Bearer sk", "x-session-id": "s"}
    history: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    settings = {"model": "gpt-5.1-codex", "store": False, "include": ["reasoning.encrypted_content"]}
    for number, items in enumerate(([said("One.")], [reasoned(1), said("Two.")], [said("Three.")])):
        provider.script = [responses_whole(*items)]
        gateway.call("/openai/v1/responses", json.dumps({**settings, "input": history}).encode(), headers)
        gateway.settle()
        history = [*history, *items, {"role": "user", "content": f"More {number}."}]
    assert AgentSession.objects.get().turn_count == 3
