"""Real clients: the providers' SDKs, Claude Code and Codex."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from compaction.adapters.tiktoken_counter import counter
from compaction.validation import validate
from importers.base import LogFile
from sessions.models import AgentSession
from sessions.selectors.convert import message_body
from sessions.selectors.past_prompts.outline import outline_at
from sessions.selectors.past_prompts.rendering import past_prompt_json
from sessions.store.bodies import json_bytes
from tests.compaction.providers import faults as provider_faults
from tests.gateway import agents
from tests.gateway.anthropic_talk import streamed, text, tool_use, whole
from tests.gateway.double import Provider, Received, Reply
from tests.gateway.openai_talk import (
    chat_stream,
    chat_whole,
    function_call,
    reasoned,
    responses_stream,
    responses_whole,
    said,
)
from tests.gateway.running import Running
from tests.importers.logs import read

pytestmark = pytest.mark.processes  # OpenAI's SDK runs uname

JSON = dict[str, Any]


def openai_client(**options: Any) -> Any:
    """Return the official client. Its import takes a second, so other tests do without it."""
    import openai

    return openai.OpenAI(**options)


def stored() -> list[JSON]:
    [session] = AgentSession.objects.all()
    return [message_body(row) for row in session.messages.select_related("blob").order_by("position")]


class TestSdks:
    @pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "json"])
    def test_anthropic(self, gateway: Running, provider: Provider, api_key: str, is_stream: bool) -> None:
        import anthropic

        client = anthropic.Anthropic(
            api_key="sk-ant",
            base_url=f"{gateway.url}/anthropic",
            default_headers={"X-Contextapp-Key": api_key},
        )
        history: list[Any] = [{"role": "user", "content": "List the files."}]
        for answer in ([text("I look."), tool_use("t1", command="ls")], [text("Größe.txt – 日本.txt")]):
            provider.script = [streamed(*answer) if is_stream else whole(*answer)]
            fields: JSON = {"model": "claude-sonnet-5-5", "max_tokens": 100, "messages": history}
            if is_stream:
                with client.messages.stream(**fields) as stream:
                    message = stream.get_final_message()
            else:
                message = client.messages.create(**fields)
            assert [block.to_dict() for block in message.content] == answer
            history.append({"role": "assistant", "content": message.content})
            if message.content[-1].type == "tool_use":
                output = {"type": "tool_result", "tool_use_id": "t1", "content": "a b"}
                history.append({"role": "user", "content": [output]})
            gateway.settle()
        assert [(message["role"], len(message["content"])) for message in stored()[1:]] == [
            ("assistant", 2), ("user", 1), ("assistant", 1),
        ]  # fmt: skip

    def test_anthropic_reports_the_providers_errors(
        self, gateway: Running, provider: Provider, api_key: str
    ) -> None:
        import anthropic

        client = anthropic.Anthropic(
            api_key=api_key, base_url=f"{gateway.url}/anthropic", default_headers={}, max_retries=0
        )
        with pytest.raises(anthropic.AuthenticationError, match="has no Anthropic API key"):
            client.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "Hi."}])

    @pytest.mark.parametrize("names", [{"X-Session-Id": "s"}, {}], ids=["named", "unnamed"])
    def test_anthropic_with_messages_that_are_sent_once(
        self, gateway: Running, provider: Provider, api_key: str, names: dict[str, str]
    ) -> None:
        import anthropic

        client = anthropic.Anthropic(
            api_key="sk-ant",
            base_url=f"{gateway.url}/anthropic",
            default_headers={"X-Contextapp-Key": api_key, **names},
        )
        history: list[Any] = []
        for number in range(4):
            history.append({"role": "user", "content": f"Read file {number}."})
            now = {"role": "user", "content": f"It is 9:4{number}."}
            provider.script = [whole(text(f"File {number} exists, but it is empty: it has no lines at all."))]
            messages = [*history, now]
            message = client.messages.create(model="claude-sonnet-5-5", max_tokens=100, messages=messages)
            history.append({"role": "assistant", "content": message.content})
            gateway.settle()
        session = AgentSession.objects.get()
        assert (session.turn_count, session.omitted_count, session.compaction_count) == (4, 3, 0)
        for turn, received in enumerate(provider.received):
            outline = outline_at(session=session, index=turn)
            assert outline is not None
            seen = json.loads(json_bytes(past_prompt_json(session=session, outline=outline)))
            assert seen["messages"] == json.loads(received.body)["messages"]

    @pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "json"])
    def test_openai_chat(self, gateway: Running, provider: Provider, api_key: str, is_stream: bool) -> None:
        client = openai_client(
            api_key="sk", base_url=f"{gateway.url}/openai/v1", default_headers={"X-Contextapp-Key": api_key}
        )
        call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}
        history: list[Any] = [{"role": "user", "content": "List the files."}]
        answers: list[JSON] = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "assistant", "content": "Größe.txt"},
        ]
        for answer in answers:
            provider.script = [chat_stream(answer) if is_stream else chat_whole(answer)]
            if is_stream:
                with client.chat.completions.stream(model="gpt-5", messages=history) as stream:
                    message = stream.get_final_completion().choices[0].message
            else:
                message = client.chat.completions.create(model="gpt-5", messages=history).choices[0].message
            history.append(message.to_dict())
            if message.tool_calls:
                history.append({"role": "tool", "tool_call_id": "c1", "content": "Größe.txt"})
            gateway.settle()
        assert [message["role"] for message in stored()] == ["user", "assistant", "tool", "assistant"]
        assert AgentSession.objects.get().cache_read_tokens == 1_800

    @pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "json"])
    def test_openai_responses(
        self, gateway: Running, provider: Provider, api_key: str, is_stream: bool
    ) -> None:
        client = openai_client(
            api_key="sk", base_url=f"{gateway.url}/openai/v1", default_headers={"X-Contextapp-Key": api_key}
        )
        history: list[Any] = [{"role": "user", "content": "List the files."}]
        for items in (
            [reasoned(), said("I look."), function_call("c1", "ls", path=".")],
            [said("Größe.txt")],
        ):
            provider.script = [responses_stream(*items) if is_stream else responses_whole(*items)]
            fields: JSON = {"model": "gpt-5.1-codex", "input": history, "instructions": "Be brief."}
            if is_stream:
                events = list(client.responses.create(stream=True, **fields))
                output = events[-1].response.output  # type: ignore[union-attr]
            else:
                output = client.responses.create(**fields).output
            history += [item.to_dict() for item in output]
            if output[-1].type == "function_call":
                history.append({"type": "function_call_output", "call_id": "c1", "output": "Größe.txt"})
            gateway.settle()
        assert [item.get("type", item.get("role")) for item in stored()] == [
            "user", "reasoning", "message", "function_call", "function_call_output", "message",
        ]  # fmt: skip
        assert stored()[1:] == history[1:]
        session = AgentSession.objects.get()
        assert (session.uncached_tokens, session.cache_read_tokens, session.output_tokens) == (200, 1_800, 40)
        assert session.format == "openai-responses"

    def test_openai_responses_without_the_reasoning(
        self, gateway: Running, provider: Provider, api_key: str
    ) -> None:
        """A client that sends only the text of the answers again continues its session."""
        client = openai_client(
            api_key="sk", base_url=f"{gateway.url}/openai/v1", default_headers={"X-Contextapp-Key": api_key}
        )
        history: list[Any] = []
        for number in range(3):
            history.append({"role": "user", "content": f"Question {number}"})
            provider.script = [responses_whole(reasoned(), said(f"Answer {number}"))]
            answer = client.responses.create(model="gpt-5.1", input=history)
            history.append({"role": "assistant", "content": answer.output_text})
            gateway.settle()
        [session] = AgentSession.objects.all()
        assert (session.turn_count, session.message_count) == (3, 7)

    @pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "json"])
    def test_openai_responses_in_compact_mode(
        self, gateway: Running, provider: Provider, api_key: str, is_stream: bool
    ) -> None:
        """The client stays in its budget, and OpenAI accepts each of its requests."""
        client = openai_client(
            api_key="sk",
            base_url=f"{gateway.url}/openai/v1",
            default_headers={
                "X-Contextapp-Key": api_key,
                "X-Contextapp-Mode": "compact",
                "X-Contextapp-Budget": "9000",
            },
        )
        history: list[Any] = [{"role": "user", "content": "Read all the files."}]
        answers: list[list[JSON]] = []

        def answer(received: Received) -> Reply:
            body = json.loads(received.body)
            assert provider_faults(body["input"], "openai-responses") == []
            made = responses_stream if is_stream else responses_whole
            return made(*answers[-1], input_tokens=token_count(received.body))

        provider.otherwise = answer
        headers: list[str] = []
        for number in range(24):
            answers.append([reasoned(number), function_call(f"c{number}", "read", path=f"file_{number}.py")])
            fields: JSON = {
                "model": "gpt-5.1-codex",
                "input": history,
                "instructions": "Be brief.",
                "store": False,
                "include": ["reasoning.encrypted_content"],
            }
            raw = client.responses.with_raw_response.create(stream=is_stream, **fields)
            headers.append(raw.headers["x-contextapp"])
            parsed = raw.parse()
            output = list(parsed)[-1].response.output if is_stream else parsed.output
            history += [item.to_dict() for item in output]
            text = "\n".join(f"{number}.{line} def handler_{number}_{line}()" for line in range(70))
            history.append({"type": "function_call_output", "call_id": f"c{number}", "output": text})
            gateway.settle()
        [session] = AgentSession.objects.all()
        assert session.compaction_count > 0
        assert headers[0] == "passthrough; reason=new"
        assert all(header.startswith("compact; ") for header in headers[1:])
        bodies = [json.loads(received.body) for received in provider.received]
        assert max(token_count(received.body) for received in provider.received) < 9_000
        assert len(json.dumps(history)) > 1.5 * len(json.dumps(bodies[-1]["input"]))
        assert {name: value for name, value in bodies[-1].items() if name != "input"} == {
            name: value for name, value in bodies[0].items() if name != "input"
        }
        changed = [old["input"] != new["input"][: len(old["input"])] for old, new in pairwise(bodies)]
        assert changed.count(True) <= session.compaction_count
        assert bodies[-1]["input"][-3:] == history[-6:-3]

    def test_openai_responses_with_stored_state_are_observed(
        self, gateway: Running, provider: Provider, api_key: str
    ) -> None:
        client = openai_client(
            api_key="sk",
            base_url=f"{gateway.url}/openai/v1",
            default_headers={"X-Contextapp-Key": api_key, "X-Contextapp-Mode": "compact"},
        )
        provider.script = [responses_whole(said("Hi."))]
        raw = client.responses.with_raw_response.create(
            model="gpt-5.1", input="Hello", previous_response_id="resp_1"
        )
        assert raw.headers["x-contextapp"] == "passthrough; reason=server-state"
        assert b"resp_1" in provider.received[-1].body


class TestAgents:
    def test_claude_code(self, gateway: Running, provider: Provider, api_key: str, tmp_path: Path) -> None:
        provider.otherwise = counting_claude
        result, log = agents.claude_code(
            tmp_path / "home", gateway=gateway.url, key=api_key, prompt="Count to three with echo."
        )
        gateway.settle()
        assert result["result"] == "I counted."
        [session] = AgentSession.objects.filter(parent=None)
        assert (session.external_id, session.agent) == (result["session_id"], "claude-code")
        assert session.title == "Count to three with echo."
        [logged], _ = read(LogFile(name="x.jsonl", data=log), "claude-code")
        assert conversation(stored_of(session)) == conversation(
            [dict(message.body) for turn in logged.turns for message in turn.messages]
        )
        usage = list(
            session.turns.order_by("index").values_list(
                "uncached_tokens", "cache_read_tokens", "output_tokens"
            )
        )
        assert usage == [
            (turn.usage.uncached_tokens, turn.usage.cache_read_tokens, turn.usage.output_tokens)
            for turn in logged.turns
            if turn.usage is not None
        ]
        assert len(usage) == 4

    def test_claude_code_in_compact_mode_stays_in_its_budget(
        self, gateway: Running, provider: Provider, api_key: str, tmp_path: Path
    ) -> None:
        sizes: list[int] = []
        histories: list[list[str]] = []

        def answer(received: Received) -> Reply:
            body = json.loads(received.body or b"{}")
            if not received.path.startswith("/v1/messages?") or not body.get("tools"):
                return whole(text("A title"))
            gateway.wait_for_recorder()  # a real answer takes longer than recording the previous one
            sizes.append(token_count(received.body))
            histories.append([json.dumps(without_breakpoints(message)) for message in body["messages"]])
            number = len(sizes)
            if number > CALLS:
                return streamed(text("I read everything."), read=sizes[-1])
            command = f"for i in $(seq 120); do echo line $i of file {number}: handler_{number}_$i; done"
            call = tool_use(f"toolu_{number}", command=command)
            return streamed(call, stop="tool_use", read=sizes[-1])

        provider.otherwise = answer
        result, _ = agents.claude_code(
            tmp_path / "home",
            gateway=gateway.url,
            key=api_key,
            prompt="Print all the files.",
            headers=["X-Contextapp-Mode: compact", f"X-Contextapp-Budget: {BUDGET}"],
        )
        gateway.settle()
        assert result["result"] == "I read everything."
        assert len(sizes) == CALLS + 1
        assert max(sizes) <= BUDGET
        [session] = AgentSession.objects.filter(parent=None)
        assert session.compaction_count > 2
        kept = [new[: len(old)] == old for old, new in pairwise(histories)]
        assert kept.count(False) <= session.compaction_count

    def test_codex(self, gateway: Running, provider: Provider, api_key: str, tmp_path: Path) -> None:
        provider.otherwise = counting_codex
        events, log = agents.codex(
            tmp_path / "home", gateway=gateway.url, key=api_key, prompt="Count to three with echo."
        )
        gateway.settle()
        [session] = AgentSession.objects.filter(parent=None)
        assert (session.external_id, session.agent) == (events[0]["thread_id"], "codex")
        [logged], _ = read(LogFile(name="x.jsonl", data=log), "codex")
        logged_items = [dict(message.body) for turn in logged.turns for message in turn.messages]
        outputs = [item["output"] for item in stored_of(session) if "output" in item]
        assert outputs == [item["output"] for item in logged_items if "output" in item]
        assert ["number 0" in outputs[0], "number 2" in outputs[2]] == [True, True]
        assert stored_of(session)[-1]["content"][0]["text"] == "I counted."
        assert validate(stored_of(session), "openai-responses") == ()
        assert session.output_tokens == 80

    def test_codex_in_compact_mode_stays_in_its_budget(
        self, gateway: Running, provider: Provider, api_key: str, tmp_path: Path
    ) -> None:
        sizes: list[int] = []

        def answer(received: Received) -> Reply:
            if received.path != "/v1/responses":
                return Reply(status=404)
            gateway.wait_for_recorder()
            body = json.loads(received.body)
            sizes.append(token_count(json.dumps(body["input"]).encode()))
            assert provider_faults([known(item) for item in body["input"]], "openai-responses") == []
            number = len(sizes)
            if number > 20:
                return responses_stream(said("I read everything."), input_tokens=token_count(received.body))
            command = f"for i in $(seq 60); do echo line $i of file {number}: handler_{number}_$i; done"
            call = codex_call(body, f"call_{number}", command)
            return responses_stream(reasoned(number), call, input_tokens=token_count(received.body))

        provider.otherwise = answer
        events, _ = agents.codex(
            tmp_path / "home",
            gateway=gateway.url,
            key=api_key,
            prompt="Print all the files.",
            headers={"X-Contextapp-Mode": "compact", "X-Contextapp-Budget": "24000"},
        )
        gateway.settle()
        assert any("I read everything." in json.dumps(event) for event in events)
        [session] = AgentSession.objects.filter(parent=None)
        assert session.compaction_count > 0
        assert len(sizes) == 21
        stored_size = token_count(json.dumps(stored_of(session)).encode())
        assert max(sizes) < 0.8 * stored_size


#: Calls of a session, and its budget in tokens. Claude Code's own tools take most of it.
CALLS, BUDGET = 24, 30_000


def token_count(body: bytes) -> int:
    return counter().count(body.decode())


def without_breakpoints(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_breakpoints(each) for k, each in value.items() if k != "cache_control"}
    return [without_breakpoints(each) for each in value] if isinstance(value, list) else value


def stored_of(session: AgentSession) -> list[JSON]:
    return [message_body(row) for row in session.messages.select_related("blob").order_by("position")]


def conversation(messages: list[JSON]) -> list[Any]:
    """Return the model's texts, calls and results, which the client's log contains as well."""
    found: list[Any] = []
    for message in messages:
        blocks = message["content"] if isinstance(message["content"], list) else []
        for block in blocks:
            if block["type"] == "tool_use":
                found.append((block["id"], block["name"], block["input"]))
            elif block["type"] == "tool_result":
                found.append((block["tool_use_id"], block["content"]))
            elif message["role"] == "assistant":
                found.append(block["text"])
    return found


def counting_claude(received: Received) -> Reply:
    body = json.loads(received.body or b"{}")
    if not received.path.startswith("/v1/messages?") or not body.get("tools"):
        return streamed(text("A title")) if body.get("stream") else whole(text("A title"))
    blocks = [
        block for message in body["messages"] for block in message["content"] if isinstance(block, dict)
    ]
    results = sum(block["type"] == "tool_result" for block in blocks)
    if results == 3:
        return streamed(text("I counted."))
    call = tool_use(f"toolu_{results}", command=f"echo number {results}")
    return streamed(text(f"Number {results}."), call, stop="tool_use")


def counting_codex(received: Received) -> Reply:
    if received.path != "/v1/responses":
        return Reply(status=404)
    body = json.loads(received.body)
    results = sum(item.get("type") == "function_call_output" for item in body["input"])
    if results == 3:
        return responses_stream(said("I counted."))
    return responses_stream(codex_call(body, f"call_{results}", f"echo number {results}"))


def codex_call(body: JSON, id: str, command: str) -> JSON:
    """Return a call of the shell tool, whose name depends on the version of Codex."""
    names = {tool.get("name") for tool in body["tools"]}
    name, argument = ("exec_command", "cmd") if "exec_command" in names else ("shell_command", "command")
    return function_call(id, name, **{argument: command})


def known(item: JSON) -> JSON:
    """Return an item without empty fields, which Codex sends."""
    return {name: value for name, value in item.items() if value is not None}
