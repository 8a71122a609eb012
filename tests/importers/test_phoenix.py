"""Exports of Phoenix. Its API returned the spans, which OpenInference recorded of the providers' clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from compaction.messages import Usage
from importers.base import ImportedSession, LogFile
from tests.importers.logs import document, jsonl, read
from tests.importers.pairing import bodies, misplaced

JSON = dict[str, Any]

PAGE = orjson.loads((Path(__file__).parent / "recorded" / "phoenix.json").read_bytes())
SPANS: list[JSON] = PAGE["data"]


def sessions_of(log: LogFile) -> list[ImportedSession]:
    sessions, damages = read(log, "phoenix")
    assert damages == []
    assert not [complaint for session in sessions for complaint in misplaced(session)]
    return sessions


def span(number: int, **attributes: Any) -> JSON:
    return {
        "name": "call",
        "span_kind": "LLM",
        "context": {"trace_id": "t1", "span_id": f"s{number}"},
        "start_time": f"2026-01-05T10:{number:02}:00+00:00",
        "attributes": attributes,
    }


def test_a_session() -> None:
    session, other = sessions_of(document(PAGE))
    assert (session.external_id, session.title, session.system) == (
        "sess-9",
        "Weather in Paris?",
        "You help.",
    )
    assert session.metadata == {"trace": "agent"}
    assert session.tools[0]["input_schema"]["properties"] == {"city": {"type": "string"}}
    assert (session.turns[0].model, session.turns[0].response_id) == ("gpt-5.1-2025-11-13", "chatcmpl-1")
    assert session.turns[0].usage == Usage(
        uncached_tokens=61, cache_read_tokens=40, cache_write_tokens=0, output_tokens=10
    )
    assert bodies(session)[0]["content"][1]["source"]["data"] == "aGk="
    assert other.external_id == SPANS[0]["context"]["trace_id"]
    assert [turn.response_id for turn in other.turns] == ["msg_3", "msg_4"]
    assert [body["content"] for body in bodies(other)][1:] == [
        [
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "toolu_3", "name": "weather", "input": {"city": "Paris"}},
        ],
        [{"type": "tool_result", "tool_use_id": "toolu_3", "content": "20 degrees"}],
        [
            {"type": "thinking", "thinking": "Think it over.", "signature": "c2ln"},
            {"type": "text", "text": "Sunny."},
        ],
    ]


def as_rows() -> LogFile:
    """Return the spans as the rows of a data frame, whose numbers are floats."""
    rows = []
    for each in SPANS:
        row = {key: value for key, value in each.items() if key not in ("attributes", "context", "id")}
        row |= {f"context.{key}": value for key, value in each["context"].items()}
        for key, value in each["attributes"].items():
            row[f"attributes.{key}"] = float(value) if isinstance(value, int) else value
        rows.append(row)
    return jsonl(*rows)


@pytest.mark.parametrize("log", [document(SPANS), jsonl(*SPANS), as_rows()])
def test_every_kind_of_export_contains_the_same_sessions(log: LogFile) -> None:
    assert sessions_of(log) == sessions_of(document(PAGE))


def test_calls_that_are_only_recorded_as_a_whole() -> None:
    request = {"messages": [{"role": "user", "content": "Hi"}]}
    answer = {"choices": [{"message": {"role": "assistant", "content": "Hello"}}]}
    values = {"input.value": orjson.dumps(request).decode(), "output.value": orjson.dumps(answer).decode()}
    [session] = sessions_of(jsonl(span(1, **values)))
    assert [body["content"][0]["text"] for body in bodies(session)] == ["Hi", "Hello"]


def test_damaged_spans_do_not_hide_the_others() -> None:
    good = span(
        1, **{"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Hi"}
    )
    bad = span(2, **{"input.value": "Hi", "output.value": '{"role": ["assistant"]}'})
    [session], damages = read(document([good, 5, {"span_kind": "LLM"}, bad]), "phoenix")
    assert session.message_count == 1
    assert [damage.reason.partition(":")[0] for damage in damages] == ["not a span"] * 2 + ["span s2"]
