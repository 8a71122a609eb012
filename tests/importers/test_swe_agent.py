"""SWE-agent: trajectories with and without tool calls."""

from __future__ import annotations

from typing import Any

from tests.importers.logs import document, read
from tests.importers.pairing import bodies, misplaced


def message(role: str, content: str, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, "agent": "main"} | fields


def test_tool_calls_are_paired_and_private_fields_are_dropped() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    history = [
        message("system", "You fix bugs."),
        message("user", "An old demonstration", is_demo=True),
        message("user", "Fix issue 7"),
        message("assistant", "Looking.", thought="Looking.", action="ls", tool_calls=[call]),
        message("tool", "a.py", tool_call_ids=["c1"], message_type="observation"),
        message("assistant", "A summary for another agent.", agent="summarizer"),
    ]
    info = {"exit_status": "submitted", "submission": "diff", "model_stats": {"instance_cost": 0.25}}
    [session], damages = read(document({"history": history, "trajectory": [], "info": info}), "swe-agent")
    assert damages == []
    assert list(misplaced(session)) == []
    assert [body["role"] for body in bodies(session)] == ["system", "user", "user", "assistant", "tool"]
    assert bodies(session)[3] == {"role": "assistant", "content": "Looking.", "tool_calls": [call]}
    assert session.turns[0].messages[1].is_meta
    assert session.metadata == {"exit_status": "submitted", "submission": "diff", "cost_microusd": 250_000}


def test_runs_without_tool_calls_are_conversations() -> None:
    history = [message("user", "Fix issue 7"), message("assistant", "ls"), message("user", "a.py")]
    [session], _ = read(document({"history": history}), "swe-agent")
    assert [len(turn.messages) for turn in session.turns] == [2, 1]
    assert session.title == "Fix issue 7"


def test_two_runs_of_one_name_are_two_sessions() -> None:
    ids = {
        read(document({"history": [message("user", words)]}), "swe-agent")[0][0].external_id
        for words in ("Fix issue 7", "Fix issue 8")
    }
    assert len(ids) == 2
