"""The adapters, each in an agent of the real framework that reads more than fits the budget."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any
from uuid import uuid4

import pytest
from contextapp_client import ContextApp

from tests.client.flaky import Canned, FlakyServer, refusal
from tests.client.frameworks.running import Frameworks
from tests.gateway import anthropic_talk, openai_talk
from tests.gateway.double import Behaviour, Provider, Received, Reply

pytestmark = pytest.mark.processes

PAGES = 10
ANSWER = "Nobody lives there."
FRAMEWORKS = (
    "pydantic_ai",
    "langchain",
    "langchain_v1",
    "langchain_graph",
    "litellm",
    "litellm_streaming",
    "openai_agents",
)
#: Those that call Anthropic's API.
CLAUDE_FRAMEWORKS = tuple(name for name in FRAMEWORKS if name != "openai_agents")
#: Input tokens of a Claude response that were not read from the cache.
UNCACHED = anthropic_talk.USAGE["input_tokens"] + anthropic_talk.USAGE["cache_creation_input_tokens"]


@pytest.fixture(scope="module")
def frameworks() -> Iterator[Frameworks]:
    frameworks = Frameworks()
    yield frameworks
    frameworks.stop()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as provider:
        provider.otherwise = _reader()
        yield provider


def _reader() -> Behaviour:
    """Return a model that requests one page after the other, and then answers."""
    numbers = count()

    def reply(request: Received) -> Reply:
        number = next(numbers)
        body = json.loads(request.body)
        _check_pairs(body)
        size = len(request.body) // 3  # as if a token were three bytes
        if request.path.endswith("/responses"):
            call = openai_talk.function_call(f"c{number}", "read_page", number=number)
            item = call if number < PAGES else openai_talk.said(ANSWER)
            fields = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
            return openai_talk.responses_whole(item, input_tokens=size, **fields)
        function = {"name": "read_page", "arguments": json.dumps({"number": number})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        answer = openai_talk.chat_stream if body.get("stream") else openai_talk.chat_whole
        if number < PAGES:
            return answer({"role": "assistant", "content": None, "tool_calls": [call]}, prompt=size)
        return answer({"role": "assistant", "content": ANSWER}, prompt=size)

    return reply


def _check_pairs(body: dict[str, Any]) -> None:
    """Check that each call is followed by its result, as providers require."""
    assert _calls(body) == _results(body)


def _items(body: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = body.get("messages") or body["input"]
    return found


def _calls(body: dict[str, Any]) -> list[str]:
    chat = [call["id"] for item in _items(body) for call in item.get("tool_calls") or ()]
    return chat + [item["call_id"] for item in _items(body) if item.get("type") == "function_call"]


def _results(body: dict[str, Any]) -> list[str]:
    chat = [item["tool_call_id"] for item in _items(body) if item.get("role") == "tool"]
    return chat + [item["call_id"] for item in _items(body) if item.get("type") == "function_call_output"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_history_is_stored_once_and_the_model_sees_a_compacted_prompt(
    framework: str, frameworks: Frameworks, served_url: str, api_key: str, provider: Provider
) -> None:
    name = uuid4().hex
    said = frameworks.run_agent(framework, url=served_url, key=api_key, session=name, provider=provider.url)
    assert said == ANSWER
    session = ContextApp(served_url, api_key).session(name)
    info = session.info()
    stored = [message for turn in session.turns() for message in turn["messages"]]
    expected = [f"c{number}" for number in range(PAGES)]
    assert _calls({"messages": stored}) == _results({"messages": stored}) == expected
    assert ANSWER in json.dumps(stored[-1])
    assert info["compactions"] > 0
    sizes = [len(request.body) for request in provider.received]
    assert max(sizes) < sum(len(json.dumps(message)) for message in stored) / 2
    assert all(request.body.count(b"Read all pages.") == 1 for request in provider.received)
    assert info["billed_tokens"]["output"] == 20 * (PAGES + 1)
    assert _is_alone(served_url, api_key, name)


def test_a_failed_call_of_pydantic_ai_has_its_error_as_its_result_and_images_are_stored(
    frameworks: Frameworks, served_url: str, api_key: str, provider: Provider
) -> None:
    name = uuid4().hex
    given = {"url": served_url, "key": api_key, "session": name, "provider": provider.url}
    assert frameworks.run_agent("pydantic_ai_history", **given) == ANSWER
    session = ContextApp(served_url, api_key).session(name)
    stored = [message for turn in session.turns() for message in turn["messages"]]
    assert [message["role"] for message in stored[:6]] == ["user", *["assistant", "tool"] * 2, "user"]
    assert stored[2]["tool_call_id"] == "failed"
    assert "is not a number" in stored[2]["content"]
    [text, image] = next(each["content"] for each in stored if each.get("tool_call_id") == "scan")
    assert text["text"] == "A scan:"
    assert image["image_url"]["url"].startswith("data:image/png;base64,")


def test_requests_of_pydantic_ai_that_are_shown_in_part_keep_system_prompts_and_images(
    frameworks: Frameworks, served_url: str, api_key: str, provider: Provider
) -> None:
    name = uuid4().hex
    given = {"url": served_url, "key": api_key, "session": name, "provider": provider.url}
    assert frameworks.run_agent("pydantic_ai_parts", **given) == "{(True, True, True)}"
    session = ContextApp(served_url, api_key).session(name)
    assert session.info()["compactions"] > 0
    stored = json.dumps([turn["messages"] for turn in session.turns()])
    assert "Picture 0:" in stored
    assert "CachePoint" not in stored


def test_langchain_keeps_invalid_calls_with_their_results_and_tools_of_a_provider(
    frameworks: Frameworks, served_url: str, api_key: str, provider: Provider
) -> None:
    name = uuid4().hex
    given = {"url": served_url, "key": api_key, "session": name, "provider": provider.url}
    assert frameworks.run_agent("langchain_odd", **given) == "system human ai tool human"
    session = ContextApp(served_url, api_key).session(name)
    stored = [message for turn in session.turns() for message in turn["messages"]]
    assert _calls({"messages": stored}) == _results({"messages": stored}) == ["failed"]


def test_a_conversation_that_langchain_summarized_stays_in_its_session(
    frameworks: Frameworks, served_url: str, api_key: str, provider: Provider
) -> None:
    name = uuid4().hex
    given = {"url": served_url, "key": api_key, "session": name, "provider": provider.url}
    assert frameworks.run_agent("langchain_summary", **given) == "Answer 7."
    stored = [turn["messages"] for turn in ContextApp(served_url, api_key).session(name).turns()]
    assert all(f"Answer {number}." in json.dumps(stored) for number in range(8))
    assert _is_alone(served_url, api_key, name)


def test_litellm_stores_refusals_and_content_of_its_own_and_creates_a_deleted_session_again(
    frameworks: Frameworks, served_url: str, admin_key: str, provider: Provider
) -> None:
    provider.script = [openai_talk.chat_whole({"role": "assistant", "content": None, "refusal": "No."})]
    provider.otherwise = lambda _: openai_talk.chat_whole({"role": "assistant", "content": ANSWER})
    name = uuid4().hex
    given = {"url": served_url, "key": admin_key, "session": name, "provider": provider.url}
    assert frameworks.run_agent("litellm_odd", **given) == ANSWER
    assert all(b"cat.mp4" in request.body for request in provider.received)
    session = ContextApp(served_url, admin_key).session(name)
    stored = [message for turn in session.turns() for message in turn["messages"]]
    assert [message["role"] for message in stored] == ["user", "assistant", "user", "assistant"]


def test_an_agent_continues_after_its_session_was_deleted(
    frameworks: Frameworks, served_url: str, admin_key: str, provider: Provider
) -> None:
    given = {"url": served_url, "key": admin_key, "session": uuid4().hex, "provider": provider.url}
    assert frameworks.run_agent("pydantic_ai_deleted", **given) == "I read 3 messages."


def test_a_later_process_continues_the_history_from_which_the_agents_sdk_took_items_back(
    frameworks: Frameworks, served_url: str, admin_key: str, provider: Provider
) -> None:
    fields = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    provider.otherwise = lambda _: openai_talk.responses_whole(openai_talk.said(ANSWER), **fields)
    given = {"url": served_url, "key": admin_key, "session": uuid4().hex, "provider": provider.url}
    said = frameworks.run_agent("openai_agents_branches", **given)
    assert said.splitlines() == ["Hello. Right question.", "New conversation."]
    [left] = ContextApp(served_url, admin_key).sessions()
    assert left["prompt"]["budget"] == 6_000
    assert left["billed_tokens"]["output"] == 20


def test_the_agents_sdk_continues_a_conversation_with_a_model_of_chat_completions(
    frameworks: Frameworks, served_url: str, api_key: str, provider: Provider
) -> None:
    """The SDK gives its answers a placeholder as the id."""
    name = uuid4().hex
    given = {"url": served_url, "key": api_key, "session": name, "provider": provider.url}
    assert frameworks.run_agent("openai_agents_chat", **given) == ANSWER
    assert ContextApp(served_url, api_key).session(name).info()["compactions"] > 0
    assert _is_alone(served_url, api_key, name)


def test_the_usage_of_the_agents_sdk_is_not_reported_for_agents_that_it_runs_as_tools(
    frameworks: Frameworks, served_url: str, api_key: str, provider: Provider
) -> None:
    fields = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    answers = [
        openai_talk.function_call("c0", "ask_reader", input="Who lives there?"),
        openai_talk.function_call("c1", "read_page", number=1),
        openai_talk.said(ANSWER),
        openai_talk.said(ANSWER),
    ]
    provider.script = [openai_talk.responses_whole(answer, **fields) for answer in answers]
    name = uuid4().hex
    given = {"url": served_url, "key": api_key, "session": name, "provider": provider.url}
    assert frameworks.run_agent("openai_agents_nested", **given) == ANSWER
    sessions = {found["external_id"] == name: found for found in ContextApp(served_url, api_key).sessions()}
    assert sessions[True]["billed_tokens"]["output"] == 40
    assert sessions[False]["parent"] is not None
    assert sessions[False]["billed_tokens"]["output"] == 0


@pytest.mark.parametrize("framework", CLAUDE_FRAMEWORKS)
def test_claude_receives_its_thinking_until_a_compaction_changes_the_prompt_before_it(
    framework: str, frameworks: Frameworks, served_url: str, api_key: str, provider: Provider
) -> None:
    thinker = Thinker()
    provider.otherwise = thinker.reply
    name = uuid4().hex
    given = {"url": served_url, "key": api_key, "session": name, "provider": provider.url}
    assert frameworks.run_agent(framework, **given, model="claude-sonnet-5-5") == ANSWER
    assert not thinker.rejected
    session = ContextApp(served_url, api_key).session(name)
    assert session.info()["compactions"] > 0
    returned = [len(_signatures(json.loads(request.body))) for request in provider.received]
    assert returned[:3] == [0, 1, 2]
    assert returned[-1] < PAGES
    stored = json.dumps([turn["messages"] for turn in session.turns()])
    assert all(f"signature-{number}" in stored for number in range(PAGES + 1))


@pytest.mark.parametrize("framework", CLAUDE_FRAMEWORKS)
def test_thinking_of_models_that_do_not_bind_it_is_kept_in_an_open_tool_loop(
    framework: str, frameworks: Frameworks, served_url: str, api_key: str, provider: Provider
) -> None:
    provider.otherwise = Thinker().reply
    name = uuid4().hex
    given = {"url": served_url, "key": api_key, "session": name, "provider": provider.url}
    assert frameworks.run_agent(framework, **given, model="claude-sonnet-4-5") == ANSWER
    assert ContextApp(served_url, api_key).session(name).info()["compactions"] > 0
    returned = [_signatures(json.loads(request.body)) for request in provider.received]
    assert all(f"signature-{number - 1}" in returned[number] for number in range(1, PAGES + 1))


class Thinker:
    """A Claude model that reads like `_reader`, and binds its thinking to the prompt (rule A11)."""

    def __init__(self) -> None:
        self.rejected: list[str] = []  #: signatures of thinking that came back with a changed prompt
        self._prompts: dict[str, Any] = {}

    def reply(self, request: Received) -> Reply:
        body = json.loads(request.body)
        messages = body["messages"]
        assert _uses(messages) == _answered(messages)
        for index, message in enumerate(messages):
            for signature in _signatures({"messages": [message]}):
                if self._prompts[signature] != (body["system"], messages[:index]):
                    self.rejected.append(signature)
        number = len(self._prompts)
        signature = f"signature-{number}"
        self._prompts[signature] = body["system"], messages
        thinking = {"type": "thinking", "thinking": "Read on.", "signature": signature}
        call = anthropic_talk.tool_use(f"toolu_{number}", number=number) | {"name": "read_page"}
        said = call if number < PAGES else anthropic_talk.text(ANSWER)
        answer = anthropic_talk.streamed if body.get("stream") else anthropic_talk.whole
        size = len(request.body) // 3  # as if a token were three bytes
        return answer(thinking, said, model=body["model"], read=max(0, size - UNCACHED))


def _blocks(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    lists = [message["content"] for message in messages if isinstance(message["content"], list)]
    return [block for blocks in lists for block in blocks]


def _signatures(body: dict[str, Any]) -> list[str]:
    return [block["signature"] for block in _blocks(body["messages"]) if block["type"] == "thinking"]


def _uses(messages: list[dict[str, Any]]) -> list[str]:
    return [block["id"] for block in _blocks(messages) if block["type"] == "tool_use"]


def _answered(messages: list[dict[str, Any]]) -> list[str]:
    return [block["tool_use_id"] for block in _blocks(messages) if block["type"] == "tool_result"]


@pytest.mark.parametrize("failure", ["no server", "error of a proxy", "too large"])
def test_without_contextapp_the_model_sees_the_whole_history(
    failure: str, frameworks: Frameworks, provider: Provider
) -> None:
    """The other adapters share the code that this one uses."""
    if failure == "error of a proxy":
        server = FlakyServer([Canned(status=502, body=b"<html>Bad gateway</html>")])
    else:
        server = FlakyServer([Canned(), refusal(413, "invalid_request", "body_too_large")])
    if failure == "no server":
        server.stop()
    said = frameworks.run_agent("litellm", url=server.url, key="ctx_no", session="s", provider=provider.url)
    if failure != "no server":
        server.stop()
    assert said == ANSWER
    assert len(_results(json.loads(provider.received[-1].body))) == PAGES


def _is_alone(url: str, key: str, name: str) -> bool:
    """Return whether the run has made no forks or side sessions."""
    return [found["external_id"] for found in ContextApp(url, key).sessions()] == [name]
