"""Session logs of GitHub Copilot CLI, recorded by version 1.0.102 with scripted answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from compaction.messages import Usage
from importers.base import ClientCompaction, ImportedSession, LogFile
from importers.reading import log_sources
from importers.values import text_of
from tests.importers.logs import jsonl, read
from tests.importers.pairing import bodies, misplaced

JSON = dict[str, Any]

RECORDED = Path(__file__).parent / "recorded"
EVENTS = [orjson.loads(line) for line in (RECORDED / "copilot.jsonl").read_bytes().splitlines()]


def recorded(name: str) -> list[ImportedSession]:
    sessions, damages = read(
        LogFile(name=f"{name}.jsonl", data=(RECORDED / f"{name}.jsonl").read_bytes()), "copilot"
    )
    assert damages == []
    assert not [complaint for session in sessions for complaint in misplaced(session)]
    return sessions


def event(kind: str, number: int, **data: Any) -> JSON:
    return {
        "type": kind,
        "data": data,
        "id": f"e{number}",
        "timestamp": f"2026-01-05T10:{number:02}:00Z",
        "parentId": None,
    }


def test_a_session_and_its_sub_agent() -> None:
    session, agent = recorded("copilot")
    assert session.external_id == "2c4c7644-d44f-40af-85a1-b41b1ee921b0"
    assert (session.title, session.model, session.context_window) == (
        "Fix the sum in sums.py",
        "gpt-4.1",
        64_000,
    )
    assert session.metadata == {"cwd": "/work/project", "git_branch": "master", "client_version": "1.0.102"}
    assert session.system == "You are the GitHub Copilot CLI, a termin"
    first = session.turns[0]
    assert first.usage == Usage(
        uncached_tokens=5_560, cache_read_tokens=100, cache_write_tokens=0, output_tokens=41
    )
    assert (first.response_id, first.first_token_ms, first.duration_ms) == ("chatcmpl-0001", 27, 28)
    asked, answered, results = bodies(session)[:3]
    assert asked["content"][0]["text"].endswith("</current_datetime>\n\nFix the sum in sums.py")
    assert answered["content"] == [
        {"type": "text", "text": "I list the files and read the module."},
        {
            "type": "tool_use",
            "id": "call_001_0",
            "name": "bash",
            "input": {"command": "ls; echo done", "description": "List files"},
        },
        {
            "type": "tool_use",
            "id": "call_001_1",
            "name": "view",
            "input": {"path": "/work/project/sums.py"},
        },
    ]
    assert [block["tool_use_id"] for block in results["content"]] == ["call_001_1", "call_001_0"]
    assert agent.parent_external_id == session.external_id
    assert (agent.title, len(agent.turns)) == ("Find tests", 2)
    assert bodies(agent)[-1]["content"] == [{"type": "text", "text": "There are no tests."}]


def test_images_errors_and_a_compaction_of_a_resumed_session() -> None:
    [session] = recorded("copilot-resumed")
    asked, answered, results = bodies(session)[:3]
    assert [block["type"] for block in asked["content"]] == ["text", "text", "image"]
    assert asked["content"][2]["source"]["media_type"] == "image/png"
    assert answered["content"][0] == {"type": "thinking", "thinking": "It is red."}
    assert results["content"][0]["is_error"]
    assert results["content"][0]["content"].startswith("Permission denied")
    marked = session.turns[-1]
    assert marked.client_compaction == ClientCompaction(trigger="manual", tokens_before=19_884)
    assert [message.is_summary for message in marked.messages] == [True, False, False]


def test_only_the_log_of_a_session_folder_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "session-state" / "s1"
    (folder / "files").mkdir(parents=True)
    for name in ("workspace.yaml", "events.jsonl", "files/data.json"):
        (folder / name).write_text("{}")
    assert [source.files for source in log_sources([tmp_path])] == [(folder / "events.jsonl",)]


def test_a_log_of_an_older_version() -> None:
    """It contains neither the usage of calls nor the prompt of a sub-agent."""
    task = {"toolCallId": "c1", "name": "task", "arguments": {"prompt": "Find the tests."}}
    patch = {"toolCallId": "c2", "name": "apply_patch", "arguments": "*** Begin Patch", "type": "custom"}
    metrics = {"usage": {"inputTokens": 900, "outputTokens": 40, "cacheReadTokens": 800}}
    log = jsonl(
        event("session.start", 0, sessionId="s1", producer="copilot-agent", selectedModel="gpt-5"),
        event("user.message", 1, content="Fix the tests, please"),
        event("assistant.message", 2, content="", toolRequests=[task, patch]),
        event("assistant.message", 3, content="There are none.", parentToolCallId="c1"),
        event("tool.execution_complete", 4, toolCallId="c1", success=True, result={"content": "None."}),
        event("tool.execution_complete", 5, toolCallId="c9", isUserRequested=True, success=True),
        event("system.notification", 6, content="<system_notification>Done.</system_notification>"),
        event("skill.invoked", 7, name="haiku", path="/s/haiku/SKILL.md", content="Three lines.\n"),
        event("session.model_change", 8, newModel="gpt-5.5"),
        event("assistant.message", 9, content="Done."),
        event("session.shutdown", 10, modelMetrics={"gpt-5": metrics, "gpt-5.5": metrics}),
    )
    (session, agent), damages = read(log, "copilot")
    assert damages == []
    assert session.metadata == {
        "input_tokens": 1_800,
        "output_tokens": 80,
        "cache_read_input_tokens": 1_600,
    }
    assert [turn.model for turn in session.turns] == ["gpt-5", "gpt-5.5"]
    assert bodies(session)[1]["content"][1]["input"] == {"input": "*** Begin Patch"}
    inserted = session.turns[1].messages[1:3]
    assert [message.is_meta for message in inserted] == [True, True]
    skill = "Base directory for this skill: /s/haiku\n\nThree lines.\n\n"
    assert text_of(inserted[1].body["content"]) == f'<skill-context name="haiku">\n{skill}</skill-context>'
    assert (agent.external_id, agent.parent_external_id) == ("s1:agent-c1", "s1")
    assert [body["content"][0]["text"] for body in bodies(agent)] == ["Find the tests.", "There are none."]


def test_reasoning_of_anthropic_keeps_its_signature() -> None:
    block = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    reasoning = {"provider": "anthropic-messages", "blocks": [block]}
    log = jsonl(
        event("user.message", 1, content="Hello"),
        event("assistant.message", 2, content="Hi.", reasoningText="Hm.", reasoningBlocks=reasoning),
    )
    [session], _ = read(log, "copilot")
    assert bodies(session)[1]["content"] == [block, {"type": "text", "text": "Hi."}]


def test_damaged_lines_are_reported() -> None:
    log = jsonl(*EVENTS[:3], {"type": "user.message", "data": 5}, *EVENTS[3:])
    data = log.data + b'{"type":"assistant.message","da'
    (session, _), damages = read(LogFile(name=log.name, data=data), "copilot")
    assert [damage.line for damage in damages] == [4, len(EVENTS) + 2]
    assert len(session.turns) == 4
