"""Qwen Code's chat recordings."""

from __future__ import annotations

from typing import Any

from compaction.messages import Usage
from importers.base import ClientCompaction
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


def system(subtype: str, **payload: Any) -> JSON:
    fields = {"uuid": subtype, "sessionId": "s1", "timestamp": "2026-11-01T10:00:09Z", "type": "system"}
    return {**fields, "subtype": subtype, "systemPayload": payload}


def test_a_compaction_by_the_client_and_its_title() -> None:
    summary = {"role": "user", "parts": [{"text": "<state_snapshot>Listed.</state_snapshot>"}]}
    kept = [{"role": "model", "parts": [{"text": "Got it."}]}]
    records = [
        system("parent_session", parentSessionId="s0"),
        record("user", 0, {"text": "List the files."}),
        record("assistant", 1, {"text": "There is a.py."}, contextWindowSize=262_144, **usage(90, 0, 20)),
        system("chat_compression", info={"originalTokenCount": 110}, compressedHistory=[summary, *kept]),
        record("user", 2, {"text": "A task has ended."}, subtype="notification"),
        record("user", 3, {"text": "Pursue the goal."}, subtype="goal_runtime", provenance="goal_runtime"),
        record("user", 4, {"text": "Read it."}),
        system("custom_title", customTitle="Files", titleSource="manual"),
    ]
    [session], damages = read(jsonl(*records), "qwen-code")
    assert damages == []
    assert (session.title, session.parent_external_id, session.context_window) == ("Files", "s0", 262_144)
    [first, after] = session.turns
    assert after.client_compaction == ClientCompaction(tokens_before=110)
    assert [message.body["content"] for message in after.messages] == [
        "<state_snapshot>Listed.</state_snapshot>",
        "A task has ended.",
        "Pursue the goal.",
        "Read it.",
    ]
    assert [message.is_summary for message in after.messages] == [True, False, False, False]
    assert [message.is_meta for message in after.messages] == [False, True, True, False]
    assert not any(message.is_summary for message in first.messages)


def test_a_subagent_is_a_session_below_that_of_its_parent() -> None:
    call = {"functionCall": {"id": "c1", "name": "read_file", "args": {}}}
    response = {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "x = 1"}}}
    facts = {"agentId": "explore-7f3c", "agentName": "Explore", "isSidechain": True}
    records = [
        record("user", 0, {"text": "Find x."}, **facts),
        record("assistant", 1, call, **facts),
        record("tool_result", 2, response, **facts),
    ]
    [session], damages = read(jsonl(*records, name="agent-explore-7f3c.jsonl"), "qwen-code")
    assert damages == []
    assert (session.external_id, session.parent_external_id) == ("s1:agent-explore-7f3c", "s1")
    assert [body["role"] for body in bodies(session)] == ["user", "assistant", "tool"]
