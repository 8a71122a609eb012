"""Exports of Langfuse. Its Python SDK recorded the calls: of the client of OpenAI, alone and in LangChain."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from compaction.messages import Usage
from importers.base import ImportedSession, LogFile
from importers.registry import recognize
from tests.importers.logs import document, jsonl, read
from tests.importers.pairing import bodies, misplaced

JSON = dict[str, Any]

DATA = (Path(__file__).parent / "recorded" / "langfuse.json").read_bytes()
OPENAI, LANGCHAIN = orjson.loads(DATA)
CALLS = OPENAI["observations"]


def sessions_of(log: LogFile) -> list[ImportedSession]:
    sessions, damages = read(log, "langfuse")
    assert damages == []
    assert not [complaint for session in sessions for complaint in misplaced(session)]
    return sessions


def generation(number: int, input: Any, output: Any, **fields: Any) -> JSON:
    return {
        "id": f"o{number}",
        "traceId": "t1",
        "type": "GENERATION",
        "startTime": f"2026-01-05T10:{number:02}:00.000Z",
        "model": "m",
        "input": input,
        "output": output,
        **fields,
    }


def as_downloaded() -> LogFile:
    """Return a trace as its page offers it."""
    texts = [
        {**call, **{key: orjson.dumps(call[key]).decode() for key in ("input", "output")}} for call in CALLS
    ]
    return document({"trace": {**OPENAI, "observations": []}, "observations": texts})


def as_rows() -> LogFile:
    """Return the rows of a blob storage."""
    trace = {"session_id": OPENAI["sessionId"], "trace_name": OPENAI["name"], "tags": OPENAI["tags"]}
    rows = [{re.sub("[A-Z]", lambda m: "_" + m[0].lower(), key): call[key] for key in call} for call in CALLS]
    return jsonl(*({**row, **trace, "environment": OPENAI["environment"]} for row in rows))


def as_page() -> LogFile:
    names = {"sessionId": OPENAI["sessionId"], "traceName": OPENAI["name"], "tags": OPENAI["tags"]}
    names["environment"] = OPENAI["environment"]
    return document({"data": [{**call, **names} for call in CALLS], "meta": {"cursor": None}})


def test_a_trace() -> None:
    session, other = sessions_of(document(OPENAI))
    assert (session.external_id, session.title, session.system) == ("sess-1", "Add 1 and 2", "You add.")
    assert (session.tags, session.metadata) == (["a"], {"trace": "run", "environment": "default"})
    assert session.tools[0]["input_schema"]["properties"] == {
        "x": {"type": "integer"},
        "y": {"type": "integer"},
    }
    assert session.turns[0].usage == Usage(
        uncached_tokens=11, cache_read_tokens=10, cache_write_tokens=0, output_tokens=41
    )
    assert session.turns[0].cost_microusd == 1_000
    assert [body["content"] for body in bodies(session)] == [
        [{"type": "text", "text": "Add 1 and 2"}],
        [
            {"type": "text", "text": "I add."},
            {"type": "tool_use", "id": "call_001_0", "name": "add", "input": {"x": 1, "y": 2}},
        ],
        [{"type": "tool_result", "tool_use_id": "call_001_0", "content": "3"}],
        [{"type": "text", "text": "It is 3."}],
    ]
    assert (other.title, other.parent_external_id) == ("No tools", "sess-1")


def as_lines() -> LogFile:
    """Return the observations of a page, one per line."""
    page = orjson.loads(as_page().data)
    return jsonl(*page["data"])


@pytest.mark.parametrize("log", [as_downloaded(), as_rows(), as_page(), as_lines()])
def test_every_kind_of_export_contains_the_same_sessions(log: LogFile) -> None:
    assert sessions_of(log) == sessions_of(document(OPENAI))


def test_a_call_that_two_libraries_record_is_read_once() -> None:
    [session] = sessions_of(document([LANGCHAIN]))
    assert [body["content"][0]["text"] for body in bodies(session)] == ["Add 1 please", "It is 3."]


def test_messages_of_other_libraries() -> None:
    langchain = [
        {"role": "system", "content": "You add."},
        {"role": "user", "content": "Add"},
        {"role": "assistant", "content": "", "tool_calls": [{"name": "add", "args": {"x": 1}, "id": "c1"}]},
        {"role": "tool", "content": "3", "tool_call_id": "c1"},
        {"role": "tool", "content": {"type": "function", "function": {"name": "add", "parameters": {}}}},
    ]
    ai_sdk = [
        {"role": "user", "content": [{"type": "text", "text": "Add"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "add", "input": {"x": 1}}],
        },
        {
            "role": "tool",
            "content": [
                {"type": "tool-result", "toolCallId": "c1", "output": {"type": "text", "value": "3"}},
            ],
        },
    ]
    items = [
        {"role": "user", "content": "Add"},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"x": 1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "3"},
    ]
    parts = [
        {"role": "user", "parts": [{"type": "text", "content": "Add"}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c1", "name": "add", "arguments": {"x": 1}}],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "result": "3"}]},
    ]
    for messages in (langchain, ai_sdk, items, parts):
        [session] = sessions_of(document([generation(1, messages, "Done.")]))
        assert [body["content"] for body in bodies(session)] == [
            [{"type": "text", "text": "Add"}],
            [{"type": "tool_use", "id": "c1", "name": "add", "input": {"x": 1}}],
            [{"type": "tool_result", "tool_use_id": "c1", "content": "3"}],
            [{"type": "text", "text": "Done."}],
        ]


def test_calls_of_functions_by_name() -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "add", "arguments": '{"x": 1}'}}
    messages = [{"role": "user", "content": "Add"}, call, {"role": "function", "name": "add", "content": "3"}]
    [session] = sessions_of(document([generation(1, messages[:1], call), generation(2, messages, "Done.")]))
    assert [body["content"] for body in bodies(session)] == [
        [{"type": "text", "text": "Add"}],
        [{"type": "tool_use", "id": "add", "name": "add", "input": {"x": 1}}],
        [{"type": "tool_result", "tool_use_id": "add", "content": "3"}],
        [{"type": "text", "text": "Done."}],
    ]


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ({"role": "assistant", "content": None, "refusal": "I must not."}, "I must not."),
        ({"content": "An answer without a role."}, "An answer without a role."),
        ({"output": "A chain's answer."}, "A chain's answer."),
        ({"title": "A", "content": "B"}, '{"title":"A","content":"B"}'),
        ({"output": "A", "score": 1}, '{"output":"A","score":1}'),
        ({"output": [{"type": "web_search_call", "id": "w"}]}, '{"type":"web_search_call","id":"w"}'),
    ],
)
def test_an_answer_is_kept_whole(output: JSON, text: str) -> None:
    [session] = sessions_of(document([generation(1, "Go", output)]))
    assert bodies(session)[1]["content"] == [{"type": "text", "text": text}]


def test_deeply_nested_values_are_not_recognized() -> None:
    data = b'{"meta": 1, "data": [' * 500 + b"1" + b"]}" * 500
    assert recognize(LogFile(name="log.json", data=data)) is None


def test_thinking_of_anthropic_is_kept() -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    answer = {"role": "assistant", "content": [thought, {"type": "text", "text": "Yes."}]}
    call = generation(1, {"system": "Be brief.", "messages": [{"role": "user", "content": "Is it?"}]}, answer)
    usage = {"input": 3, "output": 9, "cache_read_input_tokens": 500, "cache_creation_input_tokens": 40}
    [session] = sessions_of(document([{**call, "usageDetails": usage}]))
    assert bodies(session)[1]["content"][0] == thought
    assert session.turns[0].usage == Usage(
        uncached_tokens=3, cache_read_tokens=500, cache_write_tokens=40, output_tokens=9
    )


def test_damaged_observations_are_reported() -> None:
    calls = [generation(1, "Hello", "Hi"), 5, {"id": "o3", "type": "GENERATION"}]
    [session], damages = read(document(calls), "langfuse")
    assert (len(session.turns), len(damages)) == (1, 2)
    [session], damages = read(jsonl(*calls), "langfuse")
    assert [damage.line for damage in damages] == [2, 3]


def test_a_call_without_a_valid_time_is_the_last_one() -> None:
    calls = [generation(1, "Hello", "Hi", startTime=None), generation(2, "What is up?", "Nothing.")]
    assert [session.title for session in sessions_of(document(calls))] == ["What is up?", "Hello"]
