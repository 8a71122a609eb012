"""Agents with the Google Gen AI SDK, and a provider that rejects what Gemini 3 rejects."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from accounts.models import Project
from accounts.services.gateway import gateway_update
from sessions.models import AgentSession
from tests.compaction.gemini_checks import faults
from tests.gateway.double import Provider, Received, Reply
from tests.gateway.gemini_talk import called, streamed, whole
from tests.gateway.running import Running
from tests.gateway.test_recording import stored

pytestmark = pytest.mark.slow

MODEL = "gemini-3.1-pro-preview"
STEPS = 12
ANSWER = "The files define handlers."


def read(path: str) -> str:
    """Read a file."""
    return "\n".join(f"def handler_{line}(): ...  # {path}" for line in range(120))


def signature(number: int) -> str:
    """Return a signature whose two base64 alphabets differ. The SDK decodes and encodes it again."""
    return base64.b64encode(b"\xfb\xef\xff" + number.to_bytes(3, "big")).decode()


class Gemini:
    """Requests one file after the other, and then answers. `faults` are those of the requests."""

    def __init__(self, provider: Provider) -> None:
        self.contents: list[list[dict[str, Any]]] = []
        self.faults: list[str] = []
        provider.otherwise = self.answer

    def answer(self, received: Received) -> Reply:
        assert received.header("x-goog-api-key") == "AIza-test"
        contents = json.loads(received.body)["contents"]
        self.contents.append(contents)
        self.faults += faults(contents, signatures=True)
        talk = streamed if ":streamGenerateContent" in received.path else whole
        return talk(*self.parts(len(self.contents) - 1), prompt=len(received.body) // 4)

    def parts(self, number: int) -> Iterator[dict[str, Any]]:
        if number % (STEPS + 1) == STEPS:
            yield {"text": ANSWER}
        else:
            yield {"text": f"File {number} is next.", "thought": True}
            yield called("read", path=f"src/{number}.py", signature=signature(number))


class Agent:
    """A chat of the SDK."""

    def __init__(self, gateway: Running, api_key: str, *tools: Any, **config: Any) -> None:
        from google import genai
        from google.genai import types

        self.gateway, self.types = gateway, types
        options = {"base_url": f"{gateway.url}/gemini", "headers": {"X-Contextapp-Key": api_key}}
        self.client = genai.Client(api_key="AIza-test", http_options=types.HttpOptions(**options))
        self.chat = self.client.chats.create(
            model=MODEL, config=types.GenerateContentConfig(tools=[*tools], **config)
        )

    def stream(self, message: Any) -> tuple[str, list[Any]]:
        """Send a message. Return the text of the answer and its calls."""
        text, calls = "", []
        for chunk in self.chat.send_message_stream(message):
            for part in chunk.candidates[0].content.parts:
                text += part.text or "" if not part.thought else ""
                calls += [part.function_call] if part.function_call else []
        self.gateway.settle()
        return text, calls

    def run(self, request: str) -> str:
        """Send a request, and execute the calls of each answer."""
        text, calls = self.stream(request)
        while calls:
            response = self.types.Part.from_function_response
            text, calls = self.stream(
                [response(name=call.name, response={"output": read(**call.args)}) for call in calls]
            )
        return text


@pytest.fixture
def gemini(provider: Provider) -> Gemini:
    return Gemini(provider)


def declaration() -> dict[str, Any]:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    return {"function_declarations": [{"name": "read", "parameters_json_schema": schema}]}


def test_streamed_calls_with_signatures_are_recorded(gateway: Running, gemini: Gemini, api_key: str) -> None:
    agent = Agent(gateway, api_key, declaration(), system_instruction="Be brief.")
    assert agent.run("Read the files.") == ANSWER
    assert gemini.faults == []
    session = AgentSession.objects.get()
    assert (session.turn_count, session.compaction_count, session.needs_repair) == (STEPS + 1, 0, False)
    answers = [item["parts"] for item in stored(session) if item["role"] == "model"]
    assert [parts[-1].get("thoughtSignature") for parts in answers] == [*map(signature, range(STEPS)), None]
    assert answers[-1] == [{"text": ANSWER}]
    assert session.turns.filter(cost_microusd__gt=0).count() == STEPS + 1


@pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "json"])
def test_compacted_prompts_are_accepted(
    gateway: Running, gemini: Gemini, api_key: str, project: Project, is_stream: bool
) -> None:
    gateway_update(project=project, changes={"mode": "compact", "budget_tokens": 8_000})
    agent = Agent(gateway, api_key, declaration() if is_stream else read)
    for request in "Read the files.", "Read them again.":
        if is_stream:
            assert agent.run(request) == ANSWER
        else:  # the SDK executes the calls
            limit = agent.types.AutomaticFunctionCallingConfig(maximum_remote_calls=STEPS + 1)
            config = agent.types.GenerateContentConfig(tools=[read], automatic_function_calling=limit)
            assert agent.chat.send_message(request, config=config).text == ANSWER
            gateway.settle()
    assert gemini.faults == []
    assert "skip_thought_signature" not in str(gemini.contents)
    session = AgentSession.objects.get()
    assert (session.turn_count, session.needs_repair) == (2 * (STEPS + 1), False)
    assert session.compactions.filter(state="done").exists()
    assert "Read them again." in str(gemini.contents[-1])
    assert max(len(json.dumps(contents)) for contents in gemini.contents) // 4 < 9_500


def test_errors_of_the_gateway_have_the_form_that_the_sdk_reads(gateway: Running) -> None:
    from google.genai import errors

    agent = Agent(gateway, "ctx_unknown")
    with pytest.raises(errors.ClientError) as raised:
        agent.chat.send_message("Hi.")
    assert (raised.value.code, raised.value.status) == (401, "UNAUTHENTICATED")
