"""Gemini's API: streams of both kinds, keys in URLs, contents that SDKs split, and compact mode."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from accounts.models import Project
from accounts.services.gateway import gateway_update, provider_secret_set
from compaction.validation import validate
from sessions.models import AgentSession
from tests.compaction.gemini_checks import faults
from tests.gateway.double import Provider, Reply
from tests.gateway.gemini_talk import PATH, called, responded, said, streamed, whole
from tests.gateway.running import Response, Running
from tests.gateway.test_recording import stored

JSON = dict[str, Any]
Talk = Callable[..., Reply]

SYSTEM = {"parts": [{"text": "You are a coder."}]}
TOOLS = [{"functionDeclarations": [{"name": "read", "parametersJsonSchema": {"type": "object"}}]}]

#: Contents that an SDK has split, with arguments that are nested too deeply to be written again.
DEEP = b"""{"contents": [{"role": "model", "parts": [{"text": "a"}]}, {"role": "model", "parts": [{
    "functionCall": {"name": "f", "args": %b1%b}}]}]}""" % (b'{"a":' * 300, b"}" * 300)


class Agent:
    """A client that sends its whole history without thoughts, and adds ids to calls, as Gemini CLI does."""

    def __init__(self, gateway: Running, provider: Provider, api_key: str) -> None:
        self.gateway, self.provider = gateway, provider
        self.headers = {"x-contextapp-key": api_key, "x-goog-api-key": "AIza-test"}
        self.path = f"{PATH}:streamGenerateContent?alt=sse"
        self.talk: Talk = streamed
        self.history: list[JSON] = [said("Read all the files.")]

    def say(self, *parts: JSON, **fields: Any) -> Response:
        self.provider.otherwise = lambda received: self.talk(*parts, prompt=len(received.body) // 4)
        body = {"contents": self.history, "systemInstruction": SYSTEM, "tools": TOOLS, **fields}
        response = self.gateway.call(self.path, json.dumps(body).encode(), self.headers)
        assert response.status == 200, response.body
        self.gateway.settle()
        kept = [json.loads(json.dumps(part)) for part in parts if not part.get("thought")]
        for part in kept:
            if "functionCall" in part:
                part["functionCall"].setdefault("id", f"read_{len(self.history)}")
        self.history.append({"role": "model", "parts": kept})
        return response

    def work(self, number: int, *, lines: int = 60, text: str = "") -> Response:
        spoken = {"text": text} if text else {"text": f"File {number} is next.", "thought": True}
        call = called("read", path=f"src/module_{number}.py", signature=f"c2lnbmF0dXJl{number}")
        response = self.say(spoken, call)
        output = "\n".join(f"{number}.{line} def handler_{number}_{line}(): ..." for line in range(lines))
        id = self.history[-1]["parts"][-1]["functionCall"]["id"]
        self.history.append(responded("read", output, id=id))
        return response

    @property
    def forwarded(self) -> list[JSON]:
        """The contents of the last request to the provider."""
        found: list[JSON] = json.loads(self.provider.received[-1].body)["contents"]
        return found


@pytest.fixture
def agent(gateway: Running, provider: Provider, api_key: str) -> Agent:
    return Agent(gateway, provider, api_key)


def of_model(session: AgentSession) -> list[JSON]:
    return [item for item in stored(session) if item["role"] == "model"]


class TestRecording:
    @pytest.mark.parametrize(
        "kind", ["events", "whole", "encoded", pytest.param("array", marks=pytest.mark.slow)]
    )
    def test_calls_are_recorded_with_their_usage(self, agent: Agent, kind: str) -> None:
        if kind == "array":
            agent.path = f"{PATH}:streamGenerateContent"
            agent.talk = lambda *parts, **options: streamed(*parts, is_array=True, **options)
        elif kind == "whole":
            agent.path, agent.talk = f"{PATH}:generateContent", whole
        elif kind == "encoded":  # some HTTP libraries encode the colon
            agent.path = agent.path.replace(":", "%3A")
        agent.work(0)
        agent.work(1)
        agent.say({"text": "Both files define handlers."}, {"text": "", "thoughtSignature": "ZW5k"})
        session = AgentSession.objects.get()
        assert (session.format, session.model, session.turn_count) == ("gemini", "gemini-2.5-pro", 3)
        assert (session.title, session.needs_repair) == ("Read all the files.", False)
        assert [item["role"] for item in stored(session)] == ["user", *["model", "user"] * 2, "model"]
        first, second, last = of_model(session)
        assert [next(iter(part)) for part in first["parts"]] == ["text", "functionCall"]
        assert second["parts"] == [called("read", path="src/module_1.py", signature="c2lnbmF0dXJl1")]
        assert last["parts"] == [
            {"text": "Both files define handlers."},
            {"text": "", "thoughtSignature": "ZW5k"},
        ]
        for turn, received in zip(session.turns.order_by("index"), agent.provider.received, strict=True):
            prompt = len(received.body) // 4
            assert turn.uncached_tokens + turn.cache_read_tokens == prompt
            assert (turn.cache_read_tokens, turn.output_tokens) == (prompt * 9 // 10, 25)
            assert turn.cost_microusd

    def test_contents_that_an_sdk_splits_continue_the_session(self, agent: Agent) -> None:
        """Chats of the Python SDK keep each part of a stream as a content."""
        for number in range(3):
            agent.say({"text": f"File {number} defines some handlers."})
            [part] = agent.history.pop()["parts"]
            agent.history += [said(f"{word} ", "model") for word in part["text"].split(" ")]
            agent.history[-1]["parts"][0]["text"] = "handlers."
            agent.history.append(said("And the next one?"))
        session = AgentSession.objects.get()
        assert session.turn_count == 3
        assert [len(item["parts"]) for item in of_model(session)] == [1, 1, 1]
        assert agent.forwarded == agent.history[:-6]

    def test_other_calls_are_forwarded_and_not_recorded(self, agent: Agent) -> None:
        agent.provider.otherwise = lambda _: Reply(parts=[b'{"totalTokens": 7}'])
        for path in (":countTokens", ":embedContent", ":batchEmbedContents?x=1"):
            response = agent.gateway.call(f"{PATH}{path}", b"{}", agent.headers)
            assert (response.status, response.body) == (200, b'{"totalTokens": 7}')
            assert agent.provider.received[-1].path == f"/v1beta/models/gemini-2.5-pro{path}"
        agent.gateway.settle()
        assert not AgentSession.objects.exists()

    def test_a_cached_prefix_and_a_blocked_prompt_are_recorded_without_messages_of_the_model(
        self, agent: Agent
    ) -> None:
        blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}}
        agent.talk = lambda *_, **__: Reply(parts=[json.dumps(blocked).encode()])
        agent.path = f"{PATH}:generateContent"
        agent.history = [{"parts": [{"text": "Read all the files."}]}]  # the role is optional
        agent.say(cachedContent="cachedContents/1")
        session = AgentSession.objects.get()
        assert (session.title, stored(session)) == ("Read all the files.", [said("Read all the files.")])
        assert session.turns.get().uncached_tokens == 9


class TestKeys:
    def test_a_providers_key_in_the_url_is_forwarded_and_not_stored(self, agent: Agent) -> None:
        del agent.headers["x-goog-api-key"]
        agent.path += "&key=AIzaSySecretInTheUrl"
        agent.work(0)
        assert agent.provider.received[-1].path.endswith("?alt=sse&key=AIzaSySecretInTheUrl")
        assert AgentSession.objects.get().turn_count == 1
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
            )
            for (table,) in cursor.fetchall():
                cursor.execute(f"SELECT count(*) FROM \"{table}\" t WHERE t::text LIKE '%SecretInTheUrl%'")
                assert cursor.fetchone() == (0,), table

    @pytest.mark.parametrize("place", ["header", "parameter", "encoded parameter"])
    def test_the_projects_key_replaces_that_of_contextapp(
        self, agent: Agent, project: Project, api_key: str, place: str
    ) -> None:
        provider_secret_set(project=project, provider="gemini", secret="AIza-project")
        agent.headers = {"x-goog-api-key": api_key} if place == "header" else {}
        key = api_key.replace("_", "%5F") if place == "encoded parameter" else api_key
        agent.path += f"&key={key}" if place != "header" else ""
        agent.work(0)
        received = agent.provider.received[-1]
        assert received.header("x-goog-api-key") == "AIza-project"
        assert received.path.endswith("/models/gemini-2.5-pro:streamGenerateContent?alt=sse")
        assert api_key not in str(received)

    def test_errors_have_geminis_form(self, agent: Agent, api_key: str) -> None:
        for headers, reason in ({}, "No contextapp"), ({"x-goog-api-key": api_key}, "no Gemini API key"):
            response = agent.gateway.call(agent.path, b"{}", headers)
            error = json.loads(response.body)["error"]
            assert (response.status, error["code"], error["status"]) == (401, 401, "UNAUTHENTICATED")
            assert reason in error["message"]


class TestCompactMode:
    @pytest.fixture(autouse=True)
    def compact_mode(self, project: Project) -> None:
        gateway_update(project=project, changes={"mode": "compact", "budget_tokens": 8_000})

    @pytest.mark.slow
    def test_prompts_are_compacted_and_stay_valid(self, agent: Agent) -> None:
        agent.path = agent.path.replace("gemini-2.5-pro", "gemini-3-pro-preview")
        modes = []
        for number in range(14):
            modes.append(agent.work(number, lines=120).headers["x-contextapp"])
            assert list(faults(agent.forwarded, signatures=True)) == []
            assert "skip_thought_signature" not in str(agent.forwarded)
            assert agent.forwarded[-1] == agent.history[-3]
        assert all(mode.startswith("compact; ") for mode in modes[1:])
        session = AgentSession.objects.get()
        assert session.compactions.filter(state="done").exists()
        assert session.turn_count == 14
        assert max(len(each.body) for each in agent.provider.received) // 4 < 9_500
        assert validate(stored(session), "gemini") == ()
        body = json.loads(agent.provider.received[-1].body)
        assert (body["systemInstruction"], body["tools"]) == (SYSTEM, TOOLS)

    @pytest.mark.slow
    def test_split_contents_are_compacted(self, agent: Agent) -> None:
        for number in range(10):
            response = agent.work(number, lines=120, text="I read it.")
            model, result = agent.history[-2:]
            words = [said("I read ", "model"), said("it.", "model")]
            agent.history[-2:] = [*words, {**model, "parts": model["parts"][1:]}, result]
            assert list(faults(agent.forwarded)) == []
        assert response.headers["x-contextapp"].startswith("compact; ")
        assert AgentSession.objects.get().compaction_count

    @pytest.mark.slow
    def test_responses_in_several_contents_are_compacted(self, agent: Agent) -> None:
        """Some clients send the responses to parallel calls separately."""
        for number in range(10):
            calls = [called("read", path=f"{name}{number}.py") for name in "ab"]
            response = agent.say(*calls)
            agent.history += [responded("read", f"{name} = {number}\n" * 900) for name in "ab"]
            assert list(faults(agent.forwarded)) == []
        assert response.headers["x-contextapp"].startswith("compact; ")
        session = AgentSession.objects.get()
        assert (session.turn_count, session.compaction_count > 0, session.needs_repair) == (10, True, False)

    @pytest.mark.slow
    @pytest.mark.parametrize("role", [{}, {"role": "function"}])
    def test_the_contents_of_litellm_and_of_older_sdks_are_compacted(self, agent: Agent, role: JSON) -> None:
        """They spell fields in snake case, or send responses of functions without the role of the user."""
        for number in range(10):
            response = agent.work(number, lines=120)
            [call], [result] = (content["parts"] for content in agent.history[-2:])
            call = {"function_call": call["functionCall"], "thoughtSignature": call["thoughtSignature"]}
            result = {"function_response": result["functionResponse"]}
            agent.history[-2:] = [{"role": "model", "parts": [call]}, {**role, "parts": [result]}]
        assert response.headers["x-contextapp"].startswith("compact; ")
        session = AgentSession.objects.get()
        assert (session.turn_count, session.compaction_count > 0, session.needs_repair) == (10, True, False)

    @pytest.mark.parametrize(
        "body",
        [
            b'{"contents": [',
            b"[]",
            b'{"contents": {"parts": []}}',
            b'{"contents": [1, {"role": "model"}]}',
            DEEP,
        ],
    )
    def test_a_request_that_cannot_be_read_is_forwarded(self, agent: Agent, body: bytes) -> None:
        agent.provider.otherwise = lambda _: whole({"text": "Yes."})
        response = agent.gateway.call(agent.path, body, agent.headers)
        assert (response.status, agent.provider.received[-1].body) == (200, body)
        assert response.headers["x-contextapp"].startswith("passthrough; ")

    def test_split_contents_with_empty_texts_are_forwarded_with_parts(self, agent: Agent) -> None:
        """Chunks of a stream may have an empty text or none, and the API rejects a content without parts."""
        agent.history += [said("", "model"), said("", "model"), said("Go on.")]
        agent.history += [{"role": "model", "parts": [{"text": None}]}, said("Yes.", "model"), said("And?")]
        agent.say({"text": "Done."})
        assert all(item["parts"] for item in agent.forwarded)
        assert agent.forwarded[-1] == said("And?")

    def test_a_request_with_a_cache_of_the_provider_is_not_edited(self, agent: Agent) -> None:
        response = agent.say({"text": "Yes."}, cachedContent="cachedContents/1")
        assert response.headers["x-contextapp"] == "passthrough; reason=server-state"


def test_gemini_clis_own_compaction_is_a_marker_in_the_session(agent: Agent) -> None:
    agent.headers["user-agent"] = "GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux; x64; terminal)"
    for number in range(4):
        agent.work(number)
    snapshot = said("<state_snapshot>\n<overall_goal>Read all the files.</overall_goal>\n</state_snapshot>")
    agent.history = [
        snapshot,
        said("Got it. Thanks for the additional context!", "model"),
        *agent.history[-4:],
    ]
    agent.work(4)
    agent.work(5)
    session = AgentSession.objects.get()
    assert (session.turn_count, session.compactions.get().trigger) == (6, "client")


@pytest.mark.slow
def test_side_requests_of_gemini_cli_are_not_part_of_the_conversation(agent: Agent) -> None:
    agent.headers["user-agent"] = "GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux; x64; terminal)"
    agent.work(0)
    main = agent.history
    agent.history = [*main, said("Who speaks next? Answer with JSON.")]
    agent.say({"text": '{"next_speaker": "user"}'}, tools=[])
    agent.history = main
    agent.say({"text": "The file defines sixty handlers, all of them empty."})
    session = AgentSession.objects.get(parent=None)
    assert (session.agent, session.turn_count) == ("gemini-cli", 2)
    assert "Who speaks next" not in str(stored(session))
