"""Odd pushes are either rejected with a clear error, or stored unchanged and served as a valid prompt."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from django.test import override_settings

from sessions.models import AgentSession, Message, Turn
from sessions.store.bodies import json_bytes
from tests.api.client import Api, code
from tests.api.talk import PROMPT, TURNS, answer, assert_valid, call, push, request, result

pytestmark = pytest.mark.usefixtures("session")

ASK = request()


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def deep(depth: int) -> bytes:
    return b'{"messages":[{"role":"user","content":%b1%b}]}' % (b"[" * depth, b"]" * depth)


def tool_use(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", **fields}]}


REFUSED: list[tuple[str, Any, int, str]] = [
    ("nothing", b"", 400, "missing_field"),
    ("a list", [], 400, "bad_json"),
    ("half an object", b'{"messages":', 400, "bad_json"),
    ("two objects", b"{}{}", 400, "bad_json"),
    ("not UTF-8", b'{"messages":"\xff"}', 400, "bad_json"),
    ("UTF-16", '{"messages": []}'.encode("utf-16"), 400, "bad_json"),
    ("NaN", b'{"messages":[{"role":"user","content":NaN}]}', 400, "bad_json"),
    ("Infinity", b'{"messages":[{"role":"user","content":-Infinity}]}', 400, "bad_json"),
    ("a number out of range", b'{"messages":[{"role":"user","content":1e999}]}', 400, "bad_json"),
    (
        "an integer out of range",
        b'{"messages":[{"role":"user","content":%b}]}' % (b"9" * 5_000),
        400,
        "bad_json",
    ),
    ("a lone surrogate", rb'{"messages":[{"role":"user","content":"\ud800"}]}', 400, "bad_json"),
    ("a lone low surrogate as a key", rb'{"messages":[{"role":"user","\udc00":1}]}', 400, "bad_json"),
    ("a raw control character", b'{"messages":[{"role":"user","content":"\x01"}]}', 400, "bad_json"),
    ("nested too deep", deep(101), 400, "too_deep"),
    ("nested far too deep", deep(100_000), 400, "too_deep"),
    ("no messages", {}, 400, "missing_field"),
    ("messages null", {"messages": None}, 400, "missing_field"),
    ("an empty list", {"messages": []}, 400, "invalid_field"),
    ("messages an object", {"messages": {}}, 400, "invalid_field"),
    ("messages a text", {"messages": "hello"}, 400, "invalid_field"),
    ("a message a text", {"messages": ["hello"]}, 400, "invalid_message"),
    ("a message null", {"messages": [ASK, None]}, 400, "invalid_message"),
    ("no role", {"messages": [{"content": "x"}]}, 400, "invalid_message"),
    ("role a number", {"messages": [{"role": 1, "content": "x"}]}, 400, "invalid_message"),
    ("an unknown role", {"messages": [{"role": "narrator", "content": "x"}, ASK]}, 400, "invalid_message"),
    ("an empty role", {"messages": [{"role": "", "content": "x"}]}, 400, "invalid_message"),
    ("a long role with NUL", {"messages": [{"role": "us\0er" * 50, "content": "x"}]}, 400, "invalid_message"),
    ("no content", {"messages": [{"role": "user"}]}, 400, "invalid_message"),
    ("content a number", {"messages": [{"role": "user", "content": 5}]}, 400, "invalid_message"),
    (
        "content an object",
        {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}]},
        400,
        "invalid_message",
    ),
    *(
        (f"a block {block}", {"messages": [{"role": "user", "content": [block]}]}, 400, "invalid_message")
        for block in (
            *(None, 1, "x", [], {}, {"type": 5}, {"type": "text"}, {"type": "text", "text": 5}),
            {"type": "hologram", "data": [1, 2]},
            {"type": "tool_result"},
            {"type": "tool_result", "tool_use_id": 5, "content": "x"},
            {"type": "tool_result", "tool_use_id": "t", "content": 5},
            {"type": "tool_result", "tool_use_id": "t", "content": [1, None]},
        )
    ),
    *(
        (f"a call {fields}", {"messages": [tool_use(**fields)]}, 400, "invalid_message")
        for fields in ({}, {"id": 5, "name": None, "input": []}, {"id": "t", "input": {}})
    ),
    ("an unknown field", {"messages": [ASK], "mesages": []}, 400, "unknown_field"),
    ("a field with an empty name", {"messages": [ASK], "": []}, 400, "unknown_field"),
    ("model a number", {"messages": [ASK], "model": 5}, 400, "invalid_field"),
    ("model false", {"messages": [ASK], "model": False}, 400, "invalid_field"),
    ("model a list", {"messages": [ASK], "model": []}, 400, "invalid_field"),
    ("model too long", {"messages": [ASK], "model": "x" * 201}, 400, "invalid_field"),
    ("model with NUL", {"messages": [ASK], "model": "a\0b"}, 400, "invalid_field"),
    ("tools an object", {"messages": [ASK], "tools": {}}, 400, "invalid_field"),
    ("a tool a number", {"messages": [ASK], "tools": [1]}, 400, "invalid_field"),
    ("a tool without fields", {"messages": [ASK], "tools": [{}]}, 400, "invalid_field"),
    ("a tool of no format", {"messages": [ASK], "tools": [{"foo": 1}]}, 400, "invalid_field"),
    ("system a number", {"messages": [ASK], "system": 5}, 400, "invalid_field"),
    ("system an object", {"messages": [ASK], "system": {"type": "text"}}, 400, "invalid_field"),
    ("system a list of texts", {"messages": [ASK], "system": ["x"]}, 400, "invalid_field"),
    ("system true", {"messages": [ASK], "system": True}, 400, "invalid_field"),
    ("usage a list", {"messages": [ASK], "usage": []}, 400, "invalid_field"),
    (
        "usage in another format",
        {"messages": [ASK], "usage": {"billed_units": {"input_tokens": 500, "output_tokens": 20}}},
        400,
        "invalid_field",
    ),
    (
        "usage with a misspelled field",
        {"messages": [ASK], "usage": {"inputs_tokens": 5}},
        400,
        "invalid_field",
    ),
    (
        "usage details a number",
        {"messages": [ASK], "usage": {"prompt_tokens": 1, "prompt_tokens_details": 1}},
        400,
        "invalid_field",
    ),
    ("expected_turn a text", {"messages": [ASK], "expected_turn": "0"}, 400, "invalid_field"),
    ("expected_turn a fraction", {"messages": [ASK], "expected_turn": 0.0}, 400, "invalid_field"),
    ("expected_turn true", {"messages": [ASK], "expected_turn": True}, 400, "invalid_field"),
    ("expected_turn negative", {"messages": [ASK], "expected_turn": -1}, 400, "invalid_field"),
    ("expected_turn huge", {"messages": [ASK], "expected_turn": 10**30}, 400, "invalid_field"),
]


@pytest.mark.slow
def test_an_invalid_push_is_rejected_and_not_stored(api: Api, subtests: pytest.Subtests) -> None:
    for name, body, status, error_code in REFUSED:
        with subtests.test(name):
            response = api.post(TURNS, body)
            assert (response.status_code, code(response)) == (status, error_code), response.content
            assert Turn.objects.count() == Message.objects.count() == 0
            assert AgentSession.objects.get().turn_count == 0


def test_a_compressed_body_is_rejected(api: Api) -> None:
    response = api.post(TURNS, gzip.compress(json_bytes({"messages": [ASK]})), content_encoding="gzip")
    assert (response.status_code, code(response)) == (415, "unsupported_media_type")
    assert api.post(TURNS, {"messages": [ASK]}, content_encoding="identity").status_code == 201


STORED: list[tuple[str, list[dict[str, Any]]]] = [
    ("NUL in a text", [request("a\0b")]),
    ("NUL in a tool call's id and name", [ASK, call("t\0", name="n\0"), result("t\0", "x\0")]),
    ("NUL in an open call's id", [ASK, call("t\0")]),
    ("NUL in a key", [{"role": "user", "content": "x", "a\0": 1}]),
    ("a very long id", [ASK, call("t" * 10_000), result("t" * 10_000, "x")]),
    ("a tool's name without end", [ASK, call("t", name="n" * 10_000), result("t", "x")]),
    (
        "the same id twice in one message",
        [
            ASK,
            {"role": "assistant", "content": [*call("t")["content"], *call("t")["content"]]},
            result("t", "x"),
        ],
    ),
    ("the same id twice in the session", [ASK, call("t"), result("t", "x"), call("t"), result("t", "y")]),
    ("two results for one call", [ASK, call("t"), result("t", "x"), result("t", "y"), answer()]),
    ("a result without a call", [result("t", "x"), answer()]),
    ("a call without a result", [ASK, call("t"), request("Never mind."), answer()]),
    ("an open call", [ASK, call("t")]),
    ("only an answer", [answer()]),
    ("an empty content", [{"role": "user", "content": ""}]),
    ("a blank content", [{"role": "user", "content": " \n"}]),
    ("an empty list", [{"role": "user", "content": []}, {"role": "assistant", "content": []}]),
    ("content null", [{"role": "assistant", "content": None}]),
    (
        "calls with odd values",
        [
            ASK,
            tool_use(id="", name="", input="x"),
            tool_use(id="t", name="f", input=[]),
            tool_use(id="u", name="f"),
        ],
    ),
    (
        "results with odd values",
        [
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "", "is_error": "x"},
                    {"type": "tool_result", "tool_use_id": "t", "content": [{}]},
                ],
            }
        ],
    ),
    (
        "thinking without a signature",
        [
            ASK,
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "x"}],
            },
        ],
    ),
    ("nested to the limit", [{"role": "user", "content": "x", "more": nested(95)}]),
    (
        "messages of the other format",
        [
            {"role": "system", "content": "Be brief."},
            ASK,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{"}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "x"},
        ],
    ),
    (
        "a server's tool without its result",
        [
            ASK,
            {
                "role": "assistant",
                "content": [{"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}],
            },
        ],
    ),
    (
        "many breakpoints",
        [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": f"{n}", "cache_control": {"type": "ephemeral"}} for n in range(9)
                ],
            }
        ],
    ),
    ("surrogate pairs and more", [request("\U0001f600 \u2028 \ufeff \ufffe é e\u0301")]),
    ("integers over 64 bits", [ASK, call("t", n=10**40, m=-(10**25)), result("t", "x")]),
]


@pytest.mark.slow
@pytest.mark.parametrize("messages", [row[1] for row in STORED], ids=[row[0] for row in STORED])
@pytest.mark.parametrize("format", ["anthropic", "openai"])
def test_an_odd_push_is_stored_unchanged_and_served_as_a_valid_prompt(
    api: Api, format: str, messages: list[dict[str, Any]]
) -> None:
    api.post("sessions/", {"id": "odd", "format": format})
    push(api, messages, session="odd")
    [turn] = api.get("sessions/odd/turns/").json()["data"]
    assert turn["messages"] == messages
    for wanted in ("anthropic", "openai"):
        assert_valid(api.get(f"sessions/odd/prompt/?format={wanted}"))
    push(api, [request("Go on.")], session="odd")
    for wanted in ("anthropic", "openai"):
        assert_valid(api.get(f"sessions/odd/prompt/?format={wanted}&at_turn=0"))
        assert_valid(api.get(f"sessions/odd/prompt/?format={wanted}"))
    assert api.post("sessions/odd/compact/").status_code == 200
    for wanted in ("anthropic", "openai"):
        assert_valid(api.get(f"sessions/odd/prompt/?format={wanted}"))
    assert api.get("sessions/odd/search/?q=x").status_code == 200


VERBATIM = [
    b'{"role" : "user",\n "content":"caf\\u00e9 \\/ \\u0000 \\ud83d\\ude00 \xc3\xa9"}',
    b'{"content":[{"text":"a","type":"text"}],"role":"user"}',
    b'{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"a":1e5,"b":1.0,"c":1E-7}}]}',
    b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"\\t"}]}',
    b'{"role":"assistant","content":"x","d":-0.0,"e":123456789012345678901234567890,"f":0.10000000000000000555111}',
    b'{"role":"assistant","content":"first","content":"the last one counts"}',
    b'{"role":"user","content":"big","n":' + b"9" * 300 + b"}",
]


def test_every_byte_is_preserved(api: Api) -> None:
    body = b'{"messages": [' + b" ,\n".join(VERBATIM) + b'], "expected_turn": 0}'
    assert api.post(TURNS, body).status_code == 201
    listed, served = api.get(TURNS).content, api.get(PROMPT).content
    for message in VERBATIM:
        assert message in listed
        assert message in served


def test_the_last_of_duplicate_fields_counts(api: Api) -> None:
    one, two = json.dumps([request("one")]), json.dumps([request("two")])
    assert api.post(TURNS, f'{{"messages":{one},"messages":{two}}}'.encode()).status_code == 201
    assert api.get(TURNS).json()["data"][0]["messages"] == [request("two")]


class TestLimits:
    def test_a_body_over_the_limit_is_rejected(self, api: Api) -> None:
        with override_settings(CONTEXTAPP_MAX_BODY_BYTES=1_000, DATA_UPLOAD_MAX_MEMORY_SIZE=1_000):
            response = api.post(TURNS, {"messages": [request("x" * 2_000)]})
        assert (response.status_code, code(response)) == (413, "body_too_large")
        assert "1,000" in response.json()["error"]["message"]

    def test_too_many_messages_are_rejected(self, api: Api) -> None:
        with override_settings(CONTEXTAPP_MAX_MESSAGES=3):
            response = api.post(TURNS, {"messages": [request()] * 4})
        assert (response.status_code, code(response)) == (413, "too_many_messages")
        assert Turn.objects.count() == 0

    def test_a_message_over_the_limit_is_rejected(self, api: Api) -> None:
        with override_settings(CONTEXTAPP_MAX_MESSAGE_BYTES=100):
            response = api.post(TURNS, {"messages": [request(), request("x" * 200)]})
        assert (response.status_code, code(response)) == (413, "text_too_long")
        assert response.json()["error"]["param"] == "messages[1]"
        assert Turn.objects.count() == 0

    def test_a_body_of_another_type_is_rejected(self, api: Api) -> None:
        response = api.call("POST", TURNS, b"messages=x", content_type="application/x-www-form-urlencoded")
        assert response.status_code in {400, 415}

    @pytest.mark.slow
    def test_the_maximum_number_of_messages_is_accepted(self, api: Api) -> None:
        pushed = push(api, [request(str(number)) for number in range(1_000)])
        assert pushed["positions"] == {"first": 0, "last": 999}
