"""Exports of LangSmith. Its SDK recorded and returned the runs: of LangGraph and the providers' clients."""

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

DATA = (Path(__file__).parent / "recorded" / "langsmith.jsonl").read_bytes()
RUNS = [orjson.loads(line) for line in DATA.splitlines()]


def sessions_of(log: LogFile) -> list[ImportedSession]:
    sessions, damages = read(log, "langsmith")
    assert damages == []
    assert not [complaint for session in sessions for complaint in misplaced(session)]
    return sessions


def run(number: int, inputs: Any, outputs: Any, **fields: Any) -> JSON:
    return {
        "id": f"r{number}",
        "trace_id": "t1",
        "run_type": "llm",
        "start_time": f"2026-01-05T10:{number:02}:00.000",
        "inputs": inputs,
        "outputs": outputs,
        **fields,
    }


def test_a_thread() -> None:
    thread = sessions_of(jsonl(*RUNS))[0]
    assert (thread.external_id, thread.title) == ("thread-7", "How is the weather in Paris?")
    assert (thread.system, thread.metadata) == ("You are a helper.", {"trace": "LangGraph"})
    assert [tool["name"] for tool in thread.tools] == ["weather"]
    first = thread.turns[0]
    assert (first.model, first.response_id) == ("gpt-5.1-2025-11-13", "chatcmpl-1")
    assert (first.cost_microusd, first.duration_ms) == (12_300, 8)
    assert first.usage == Usage(
        uncached_tokens=61, cache_read_tokens=40, cache_write_tokens=0, output_tokens=10
    )
    assert [body["content"][0]["type"] for body in bodies(thread)] == [
        *("text", "tool_use", "tool_result", "text"),
        *("text", "tool_use", "tool_result", "text"),
    ]


def test_an_agent_in_a_tool_is_a_sub_agent() -> None:
    _, main, agent, *_ = sessions_of(jsonl(*RUNS))
    assert (main.external_id, main.system, main.tags) == ("s-1", "You are a boss.", ["prod"])
    assert (agent.parent_external_id, agent.system) == ("s-1", "You are an expert.")
    assert agent.turns[1].usage == Usage(
        uncached_tokens=50, cache_read_tokens=30, cache_write_tokens=20, output_tokens=9
    )
    assert bodies(agent)[3]["content"] == [
        {"type": "thinking", "thinking": "Think it over.", "signature": "c2ln"},
        {"type": "text", "text": "Sunny."},
    ]


def test_calls_of_the_providers_clients() -> None:
    chat, messages, responses, own = sessions_of(jsonl(*RUNS))[3:]
    assert (chat.external_id, chat.system) == ("t-oa", "You help.")
    assert bodies(chat)[0]["content"][1]["source"] == {
        "type": "base64",
        "media_type": "image/png",
        "data": "aGk=",
    }
    assert (messages.system, len(messages.turns)) == ("You are kind.", 2)
    assert (responses.system, responses.turns[1].response_id) == ("Be brief.", "resp_6")
    assert [block["type"] for block in bodies(responses)[1]["content"]] == ["thinking", "tool_use", "text"]
    assert (own.model, own.title) == ("m-1", "custom")


def as_tree() -> LogFile:
    """Return the runs as `read_run(load_child_runs=True)` returns them, of all traces."""
    roots = {each["trace_id"]: {**each, "child_runs": []} for each in RUNS if "parent_run_id" not in each}
    for each in RUNS:
        if "parent_run_id" in each:
            roots[each["trace_id"]]["child_runs"].append(each)
    return document(list(roots.values()))


def as_new_page() -> LogFile:
    """Return the runs as a page of the second version of the API."""
    items = []
    for each in RUNS:
        item = {**each, "run_type": each["run_type"].upper(), "metadata": each["extra"].get("metadata")}
        item["parent_run_ids"] = [item.pop("parent_run_id")] if "parent_run_id" in item else []
        items.append(item | {"prompt_token_details": {"raw": item.get("prompt_token_details")}})
    return document({"items": items, "next_cursor": None})


def as_rows() -> LogFile:
    """Return the rows of a bulk export, which contain JSON as text."""
    names = ("inputs", "outputs", "extra", "tags")
    rows = ({**each, **{key: orjson.dumps(each.get(key)).decode() for key in names}} for each in RUNS)
    return jsonl(*rows)


@pytest.mark.parametrize(
    "log", [document(RUNS), document({"runs": RUNS, "cursors": {}}), as_tree(), as_new_page(), as_rows()]
)
def test_every_kind_of_export_contains_the_same_sessions(log: LogFile) -> None:
    assert sessions_of(log) == sessions_of(jsonl(*RUNS))


def test_the_usage_that_the_server_counted() -> None:
    details = {"prompt_tokens": 10, "completion_tokens": 4, "prompt_token_details": {"cache_read": 6}}
    [session] = sessions_of(document([run(1, {"prompts": ["Hi"]}, {"output": "Hello"}, **details)]))
    assert [body["content"][0]["text"] for body in bodies(session)] == ["Hi", "Hello"]
    assert session.turns[0].usage == Usage(
        uncached_tokens=4, cache_read_tokens=6, cache_write_tokens=0, output_tokens=4
    )


def test_arguments_of_a_function_that_calls_a_model() -> None:
    [session] = sessions_of(document([run(1, {"question": "Why?"}, {"answer": "So."})]))
    assert [body["content"][0]["text"] for body in bodies(session)] == [
        '{"question":"Why?"}',
        '{"answer":"So."}',
    ]
    [without] = sessions_of(document([run(1, {}, {"answer": "So."})]))  # as if its inputs are hidden
    assert [body["role"] for body in bodies(without)] == ["assistant"]


def test_damaged_runs_do_not_hide_the_others() -> None:
    good = run(1, {"messages": [{"role": "user", "content": "Hi"}]}, {"role": "assistant", "content": "Yes"})
    bad = run(2, {"messages": [{"role": "user", "content": "Hi"}]}, {"role": ["assistant"]})
    [session], damages = read(document([good, 5, bad]), "langsmith")
    assert session.message_count == 2
    assert [damage.reason.partition(":")[0] for damage in damages] == ["not a run", "run r2"]
