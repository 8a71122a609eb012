"""Sessions without a format, sessions that mix dialects, and messages that fit no dialect."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from sessions.models import AgentSession, Turn
from sessions.selectors import lookups
from tests.api.client import Api, code
from tests.api.statements import statements
from tests.api.talk import answer, call, openai_turn, output, prompt, push, request, result
from tests.api.talk import whole_turn as anthropic_turn
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db

SYSTEM = {"role": "system", "content": "You are a careful engineer."}
TOOL = {"name": "read_file", "input_schema": {"type": "object", "properties": {}}}
OPENAI_TOOL = {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}


@reused(autouse=True)
def undetected(api: Api) -> None:
    """A session that was created without a format."""
    assert api.post("sessions/", {"id": "s1"}).json()["format"] is None


def detected(api: Api) -> str | None:
    """The session's format."""
    format: str | None = api.get("sessions/s1/").json()["format"]
    return format


def tool_ids(messages: list[dict[str, Any]]) -> list[str]:
    """The ids of all calls and results, in order, in either dialect."""
    found = []
    for message in messages:
        found += [each["id"] for each in message.get("tool_calls") or []]
        found += [message["tool_call_id"]] if message["role"] == "tool" else []
        blocks = message["content"] if isinstance(message["content"], list) else []
        found += [block.get("id") or block.get("tool_use_id") for block in blocks if block["type"] != "text"]
    return found


def test_openai_messages_in_a_session_without_a_format_keep_their_tool_calls(api: Api) -> None:
    push(api, openai_turn(0))
    assert detected(api) == "openai"
    assert prompt(api)["messages"] == openai_turn(0)
    served = prompt(api, "?format=anthropic")["messages"]
    assert tool_ids(served) == ["call_00000", "call_00000"]
    assert not any("tool_call_id" in message or "tool_calls" in message for message in served)


class TestDetection:
    def test_the_first_distinctive_push_determines_the_dialect(self, api: Api) -> None:
        push(api, [request("Hello")])
        assert detected(api) is None
        assert prompt(api)["format"] == "anthropic"
        push(api, openai_turn(1))
        assert detected(api) == "openai"
        served = prompt(api)
        assert (served["format"], served["messages"]) == ("openai", [request("Hello"), *openai_turn(1)])
        assert prompt(api, "?at_turn=0")["messages"] == [request("Hello")]

    def test_anthropic_messages_are_recognized(self, api: Api) -> None:
        push(api, anthropic_turn(0))
        assert detected(api) == "anthropic"
        assert prompt(api)["messages"] == anthropic_turn(0)

    def test_a_system_message_makes_it_openai(self, api: Api) -> None:
        push(api, [SYSTEM, request()])
        assert detected(api) == "openai"
        assert prompt(api)["messages"] == [SYSTEM, request()]

    @pytest.mark.parametrize(("tool", "format"), [(TOOL, "anthropic"), (OPENAI_TOOL, "openai")])
    def test_tool_definitions_decide_when_the_session_is_created(
        self, api: Api, tool: dict[str, Any], format: str
    ) -> None:
        assert api.post("sessions/", {"id": "s2", "tools": [tool]}).json()["format"] == format
        push(api, [request()], session="s2")
        assert prompt(api, session="s2")["tools"] == [tool]

    def test_tool_definitions_decide_when_they_are_pushed(self, api: Api) -> None:
        push(api, [request()], tools=[OPENAI_TOOL])
        assert detected(api) == "openai"

    def test_a_given_format_is_kept(self, api: Api) -> None:
        api.post("sessions/", {"id": "s2", "format": "anthropic"})
        push(api, openai_turn(0), session="s2")
        assert api.get("sessions/s2/").json()["format"] == "anthropic"
        assert tool_ids(prompt(api, session="s2")["messages"]) == ["call_00000", "call_00000"]

    def test_a_detected_format_is_kept(self, api: Api) -> None:
        push(api, openai_turn(0))
        push(api, anthropic_turn(1))
        assert detected(api) == "openai"

    def test_a_process_with_a_stale_cache_uses_the_detected_dialect(self, api: Api) -> None:
        push(api, [request()])
        stale = dict(lookups._routes)
        push(api, openai_turn(0))
        lookups._routes.update(stale)
        push(api, [request(""), request("x")])
        assert prompt(api)["messages"][-2:] == [request(""), request("x")]

    @pytest.mark.slow
    def test_an_undetected_session_is_compacted(self, api: Api) -> None:
        for number in range(12):
            push(api, [request(output(number, 40))])
        assert api.post("sessions/s1/compact/").status_code == 200
        assert detected(api) is None
        push(api, openai_turn(0))
        for query in ("", "?format=anthropic", "?at_turn=3", "?at_turn=3&format=anthropic"):
            prompt(api, query)

    def test_fields_that_only_one_dialect_accepts_are_not_served_in_the_other(self, api: Api) -> None:
        push(api, [{**request(), "custom": 1}])
        push(api, openai_turn(0))
        assert prompt(api)["messages"][0] == request()

    @pytest.mark.parametrize("page", ["session", "session_prompt", "session_raw", "session_turn"])
    def test_pages_of_an_undetected_session_are_shown(
        self, api: Api, member_client: Client, page: str
    ) -> None:
        push(api, [request("Hello")])
        session = AgentSession.objects.select_related("project").get(external_id="s1")
        turn = [0] if page == "session_turn" else []
        response = member_client.get(reverse(page, args=[session.project.slug, session.pk, *turn]))
        assert response.status_code == 200


class TestMixedSessions:
    @pytest.mark.parametrize("format", ["anthropic", "openai"])
    def test_a_mixed_session_is_valid_in_both_dialects_and_exact_in_each_message_dialect(
        self, api: Api, format: str
    ) -> None:
        api.post("sessions/", {"id": "s2", "format": format})
        turns = [openai_turn(0), anthropic_turn(1), openai_turn(2), anthropic_turn(3)]
        for turn in turns:
            push(api, turn, session="s2")
        ids = ["call_00000", "toolu_00001", "call_00002", "toolu_00003"]
        exact = {"openai": turns[0][1:3] + turns[2][1:3], "anthropic": turns[1][1:3] + turns[3][1:3]}
        for wanted in ("anthropic", "openai"):
            served = prompt(api, f"?format={wanted}", session="s2")["messages"]
            assert tool_ids(served) == [id for id in ids for _ in range(2)]
            assert all(message in served for message in exact[wanted])
            assert prompt(api, f"?format={wanted}&at_turn=3", session="s2")["messages"] == served
            prompt(api, f"?format={wanted}&at_turn=1", session="s2")

    @pytest.mark.slow
    def test_it_is_compacted(self, api: Api) -> None:
        body = {"id": "s2", "budget": {"input_tokens": 4_000}, "policy": "masking"}
        api.post("sessions/", body)
        for number in range(16):
            push(api, (openai_turn if number % 3 else anthropic_turn)(number), session="s2")
            for wanted in ("anthropic", "openai"):
                prompt(api, f"?format={wanted}", session="s2")
                prompt(api, f"?format={wanted}&at_turn={number // 2}", session="s2")
        assert api.get("sessions/s2/").json()["compactions"] > 0
        assert api.get("sessions/s2/search/?q=handler_3_1").json()["data"]

    def test_a_call_in_one_dialect_is_answered_in_the_other(self, api: Api) -> None:
        long = "call_" + "x" * 60
        push(api, [request(), openai_turn(0)[1]])
        push(api, [result("call_00000", "one")])
        push(api, [call(long), {"role": "tool", "tool_call_id": long, "content": "two"}, answer()])
        for wanted in ("anthropic", "openai"):
            served = prompt(api, f"?format={wanted}")["messages"]
            ids = tool_ids(served)
            assert ids[0::2] == ids[1::2]
            assert "No result" not in str(served)


#: Messages that no provider accepts.
REJECTED: list[tuple[str, dict[str, Any]]] = [
    ("an unknown role", {"role": "narrator", "content": "x"}),
    ("an empty role", {"role": "", "content": "x"}),
    ("no content", {"role": "user"}),
    ("an assistant without content", {"role": "assistant"}),
    ("content null", {"role": "user", "content": None}),
    ("content a number", {"role": "user", "content": 5}),
    ("content an object", {"role": "user", "content": {"type": "text", "text": "x"}}),
    ("a block that is no object", {"role": "user", "content": ["x"]}),
    ("a block without a type", {"role": "user", "content": [{"text": "x"}]}),
    ("a block of an unknown type", {"role": "user", "content": [{"type": "hologram", "data": [1]}]}),
    ("a text block without text", {"role": "user", "content": [{"type": "text"}]}),
    ("an image without a source", {"role": "user", "content": [{"type": "image"}]}),
    ("a call by the user", {"role": "user", "content": call("t")["content"]}),
    (
        "a call without a name",
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "input": {}}]},
    ),
    ("a result without an id", {"role": "user", "content": [{"type": "tool_result", "content": "x"}]}),
    ("a tool message without an id", {"role": "tool", "content": "x"}),
    ("tool calls that are no list", {"role": "assistant", "content": "x", "tool_calls": {"id": "c"}}),
    (
        "a tool call of another shape",
        {"role": "assistant", "tool_calls": [{"name": "f", "args": {}, "id": "c"}]},
    ),
    (
        "calls of two dialects in one message",
        {**call("t"), "tool_calls": openai_turn(0)[1]["tool_calls"]},
    ),
    ("a result with calls", {**result("t", "x"), "tool_call_id": "c"}),
]


@pytest.mark.parametrize("format", [None, "anthropic", "openai"])
def test_a_message_that_fits_no_dialect_is_rejected_with_its_index(
    api: Api, format: str | None, subtests: pytest.Subtests
) -> None:
    api.post("sessions/", {"id": "s2"} | ({"format": format} if format else {}))
    for name, message in REJECTED:
        with subtests.test(name):
            response = api.post("sessions/s2/turns/", {"messages": [request(), message]})
            assert (response.status_code, code(response)) == (400, "invalid_message"), response.content
            assert response.json()["error"]["param"] == "messages[1]"
            assert Turn.objects.count() == 0


def test_the_error_describes_the_violation(api: Api) -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "hologram"}]}
    response = api.post("sessions/s1/turns/", {"messages": [message]})
    assert "content[1]" in response.json()["error"]["message"]
    assert "`hologram`" in response.json()["error"]["message"]


def test_a_push_that_determines_the_dialect_takes_one_statement(api: Api) -> None:
    push(api, [request()])
    found = statements(lambda: push(api, openai_turn(0)))
    assert len([sql for sql in found if not sql.startswith(("SAVEPOINT", "RELEASE"))]) <= 3
    assert AgentSession.objects.get(external_id="s1").format == "openai"


def test_an_approval_whose_request_was_not_pushed_is_stored_and_not_served(api: Api) -> None:
    api.post("sessions/", {"id": "s1", "format": "openai-responses"})
    approval = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    push(api, [request("Deploy."), approval])
    assert api.get("sessions/s1/turns/").json()["data"][0]["messages"][1] == approval
    assert api.get("sessions/s1/prompt/").json()["messages"] == [request("Deploy.")]


def test_tools_of_another_dialect_are_translated(api: Api, subtests: pytest.Subtests) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    own = {"name": "ls", "description": "List files."}
    function = own | {"parameters": schema}
    tools = {
        "anthropic": own | {"input_schema": schema},
        "openai": {"type": "function", "function": function},
        "openai-responses": {"type": "function"} | function,
    }
    # Without the type that OpenAI requires, as in the deprecated field `functions`.
    untyped = {"function": function, "nested": {"function": function}}
    for format, wanted in tools.items():
        for source, pushed in (tools | untyped).items():
            with subtests.test(format=format, source=source):
                name = f"{format}-{source}"
                api.post("sessions/", {"id": name, "format": format})
                push(api, [request()], session=name, tools=[pushed])
                [served] = api.get(f"sessions/{name}/prompt/").json()["tools"]
                assert served.items() >= wanted.items()
