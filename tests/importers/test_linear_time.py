"""Logs with very many calls, blocks or conversations do not block a worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from importers.base import LogFile
from importers.reading import log_sources
from importers.registry import recognize
from tests.importers.logs import block, document, jsonl, read, text


def gemini(count: int) -> LogFile:
    """Parallel calls, whose responses arrive in reverse order."""
    calls = [{"functionCall": {"id": f"c{n}", "name": "read", "args": {}}} for n in range(count)]
    results = [
        {"functionResponse": {"id": f"c{n}", "name": "read", "response": {"output": "x"}}}
        for n in reversed(range(count))
    ]
    return document([{"role": "model", "parts": calls}, {"role": "user", "parts": results}])


def claude_code(count: int) -> LogFile:
    """One response of many blocks."""
    return jsonl(*(block("m1", text(f"Part {n}"), f"a{n}") for n in range(count)))


def openhands(count: int) -> LogFile:
    """Delegates with different tasks."""
    response = {"choices": [{"message": {"role": "assistant", "content": "Done."}}]}
    tasks = ([{"role": "user", "content": f"Task {n}"}] for n in range(count))
    return jsonl(*({"messages": task, "response": response, "kwargs": {}} for task in tasks))


def cline(count: int) -> LogFile:
    """Tags without an end."""
    return document([{"role": "user", "content": [{"type": "text", "text": "<task>" * count}], "ts": 1}])


def responses(count: int) -> LogFile:
    """Requests whose first item always changes."""
    items = [{"role": "user", "content": f"Part {number}"} for number in range(count)]
    clock = ({"role": "developer", "content": f"It is {number} o'clock."} for number in range(3))
    return jsonl(*({"model": "gpt-5", "input": [each, *items]} for each in clock))


def inspect(count: int) -> LogFile:
    """Calls whose requests are ranges of one list of messages."""
    answer = {"role": "assistant", "content": "More."}
    pool = [{"role": "user", "content": "Go on."}, answer] * count
    calls = (
        {"event": "model", "input_refs": [[0, 2 * n + 1]], "output": {"choices": [{"message": answer}]}}
        for n in range(count)
    )
    sample = {"id": 1, "events": list(calls), "events_data": {"messages": pool}}
    return document({"version": 2, "status": "", "eval": {"run_id": "r"}, "samples": [sample]})


@pytest.mark.parametrize(
    ("log", "count", "format"),
    [
        (gemini, 1_500, "gemini-cli"),
        (cline, 60_000, "cline"),
        pytest.param(inspect, 3_000, "inspect", marks=pytest.mark.slow),
        pytest.param(claude_code, 15_000, "claude-code", marks=pytest.mark.slow),
        pytest.param(openhands, 4_000, "openhands", marks=pytest.mark.slow),
        pytest.param(responses, 12_000, "openai-responses", marks=pytest.mark.slow),
    ],
)
def test_a_log_is_read_in_linear_time(log: Callable[[int], LogFile], count: int, format: str) -> None:
    file = log(count)
    started = time.process_time()
    _, damages = read(file, format)
    assert time.process_time() - started < 3
    assert not damages


@pytest.mark.slow
def test_a_folder_is_listed_in_linear_time(tmp_path: Path) -> None:
    for number in range(5_000):
        (tmp_path / f"{number}.json").touch()
    started = time.process_time()
    assert len(list(log_sources([tmp_path]))) == 5_000
    assert time.process_time() - started < 1


def test_a_document_on_one_line_is_parsed_once() -> None:
    """Not once by each importer that might recognize it."""
    messages = [{"role": "user", "content": 'One "more" line.\n' * 500} for _ in range(1_000)]
    log = LogFile(name="run.json", data=orjson.dumps({"messages": messages}))
    parsing, recognizing = [], []
    for number in range(3):
        started = time.process_time()
        orjson.loads(log.data)
        parsed = time.process_time()
        assert recognize(replace(log, name=f"run-{number}.json"))
        recognized = time.process_time()
        parsing.append(parsed - started)
        recognizing.append(recognized - parsed)
    assert min(recognizing) < 10 * min(parsing)
