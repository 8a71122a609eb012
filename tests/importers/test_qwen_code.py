"""Qwen Code's chat recordings."""

from __future__ import annotations

from typing import Any

from compaction.messages import Usage
from tests.importers.logs import jsonl, read
from tests.importers.pairing import bodies

JSON = dict[str, Any]


def record(kind: str, number: int, *parts: JSON, **fields: Any) -> JSON:
    role = "model" if kind == "assistant" else "user"
    return {
        "uuid": f"u{number}",
        "sessionId": "s1",
        "timestamp": f"2026-11-01T10:00:0{number}.000Z",
        "type": kind,
        "cwd": "/work",
        "version": "0.15.10",
        "gitBranch": "fix",
        "message": {"role": role, "parts": list(parts)},
        **fields,
    }


def usage(prompt: int, cached: int, output: int) -> JSON:
    counts = {"promptTokenCount": prompt, "cachedContentTokenCount": cached, "candidatesTokenCount": output}
    return {"model": "qwen3-coder", "usageMetadata": {**counts, "thoughtsTokenCount": 5}}


def test_a_recording() -> None:
    telemetry = {"uuid": "t", "sessionId": "s1", "type": "system", "subtype": "ui_telemetry"}
    call = {"functionCall": {"id": "c1", "name": "run_shell_command", "args": {"command": "ls"}}}
    response = {"functionResponse": {"id": "c1", "name": "run_shell_command", "response": {"output": "a.py"}}}
    records = [
        record("user", 0, {"text": "List the files."}),
        telemetry,
        record(
            "assistant", 1, {"text": "Hm.", "thought": True}, {"text": "I look."}, call, **usage(90, 0, 20)
        ),
        record("tool_result", 2, response, toolCallResult={"callId": "c1", "status": "success"}),
        record("assistant", 3, {"text": "There is a.py."}, **usage(120, 80, 7)),
    ]
    [session], damages = read(jsonl(*records), "qwen-code")
    assert damages == []
    assert (session.external_id, session.agent, session.title) == ("s1", "qwen-code", "List the files.")
    assert session.metadata == {"cwd": "/work", "git_branch": "fix", "client_version": "0.15.10"}
    function = {"name": "run_shell_command", "arguments": '{"command": "ls"}'}
    assert bodies(session) == [
        {"role": "user", "content": "List the files."},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
        {"role": "assistant", "content": "There is a.py."},
    ]
    assert [turn.usage for turn in session.turns] == [
        Usage(uncached_tokens=90, cache_read_tokens=0, cache_write_tokens=0, output_tokens=20),
        Usage(uncached_tokens=40, cache_read_tokens=80, cache_write_tokens=0, output_tokens=7),
    ]
