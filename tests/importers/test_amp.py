"""Threads of Amp."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from compaction.messages import Usage
from compaction.validation import validate
from importers.base import ImportedSession
from tests.importers.logs import document, read

ID = "T-7a1f0c52-3b1e-4a55-9d0c-5f2f6f3f1a01"


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def used(call: str) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "complete": True,
        "id": call,
        "name": "Bash",
        "input": {"cmd": f"make {call}"},
    }


def ran(call: str, **run: Any) -> dict[str, Any]:
    return {"type": "tool_result", "toolUseID": call, "run": run, "userInput": {}}


def asked(number: int, *content: dict[str, Any]) -> dict[str, Any]:
    meta = {"sentAt": 1_767_607_200_000 + number}
    return {"role": "user", "messageId": number, "content": list(content), "meta": meta}


def answered(number: int, *content: dict[str, Any]) -> dict[str, Any]:
    usage = {
        "model": "claude-opus-4-5",
        "inputTokens": 9,
        "outputTokens": 70,
        "cacheCreationInputTokens": 400,
        "cacheReadInputTokens": 12_000,
        "totalInputTokens": 12_409,
        "timestamp": "2026-01-05T10:00:05.000Z",
    }
    state = {"type": "complete", "stopReason": "tool_use"}
    message = {"role": "assistant", "messageId": number, "content": list(content)}
    return message | {"state": state, "usage": usage}


def thread(*messages: dict[str, Any], **facts: Any) -> ImportedSession:
    environment = {
        "platform": {"os": "linux", "client": "CLI", "clientVersion": "0.0.1767600000"},
        "trees": [{"uri": "file:///home/u/my%20app", "repository": {"ref": "refs/heads/fix"}}],
    }
    value = {"v": 9, "id": ID, "created": 1_767_607_200_000, "env": {"initial": environment}, **facts}
    [session], damages = read(document({**value, "messages": list(messages)}, f"{ID}.json"), "amp")
    assert not damages
    return session


def bodies(session: ImportedSession) -> list[dict[str, Any]]:
    return [dict(message.body) for turn in session.turns for message in turn.messages]


def test_a_thread() -> None:
    thinking = {"type": "thinking", "thinking": "Both at once.", "signature": "c2ln", "provider": "anthropic"}
    session = thread(
        asked(0, said("Fix the build")),
        answered(1, thinking, said("I run both."), used("c1"), used("c2")),
        asked(2, ran("c1", status="done", result={"output": "ok", "exitCode": 0}), ran("c2", status="error")),
        answered(3, said("Done.")),
        title="Build",
    )
    assert (session.external_id, session.title, session.model) == (ID, "Build", "claude-opus-4-5")
    assert session.started_at == datetime(2026, 1, 5, 10, tzinfo=UTC)
    facts = {"cwd": "/home/u/my app", "git_branch": "fix", "client_version": "0.0.1767600000"}
    assert session.metadata == facts
    usage = Usage(uncached_tokens=9, cache_read_tokens=12_000, cache_write_tokens=400, output_tokens=70)
    assert [turn.usage for turn in session.turns] == [usage, usage]
    assert [len(turn.messages) for turn in session.turns] == [2, 2]
    _, answer, results, _ = bodies(session)
    assert [block["type"] for block in answer["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert [(block["content"], block.get("is_error")) for block in results["content"]] == [
        ('{"output":"ok","exitCode":0}', None),
        ("error", True),
    ]
    assert validate(bodies(session), "anthropic") == ()


@pytest.mark.parametrize(
    ("run", "text"),
    [
        ({"status": "error", "error": {"message": "No such file"}}, "No such file"),
        ({"status": "error", "error": "timed out"}, "timed out"),
        ({"status": "cancelled", "reason": "user interrupted"}, "user interrupted"),
        ({"status": "rejected-by-user", "reason": "Not now"}, "Not now"),
        ({"status": "cancelled"}, "cancelled"),
    ],
)
def test_a_call_without_a_result(run: dict[str, Any], text: str) -> None:
    session = thread(asked(0, said("Go")), answered(1, used("c1")), asked(2, said("Wait."), ran("c1", **run)))
    [result, words] = bodies(session)[-1]["content"]
    assert (result["content"], result["is_error"], words["text"]) == (text, True, "Wait.")
    assert validate(bodies(session), "anthropic") == ()


def test_images_and_commands_of_the_user_are_kept() -> None:
    image = {"type": "image", "source": {"type": "base64", "mediaType": "image/png", "data": "aGk="}}
    ran = {"type": "manual_bash_invocation", "args": {"cmd": "ls"}, "toolRun": {"status": "done"}}
    info = {"role": "info", "messageId": 0, "content": [ran]}
    session = thread(info, asked(1, said("Look at this picture"), image), answered(2, said("")))
    command, body = bodies(session)
    assert (command["role"], '"cmd":"ls"' in command["content"][0]["text"]) == ("user", True)
    assert body["content"][1]["source"] == {"type": "base64", "media_type": "image/png", "data": "aGk="}
    assert (session.title, len(session.turns)) == ("Look at this picture", 1)


def test_a_summary_replaces_the_messages_before_it() -> None:
    summary = {"type": "summary", "summary": {"type": "message", "summary": "The build is fixed."}}
    info = {"role": "info", "messageId": 2, "content": [summary]}
    session = thread(asked(0, said("Fix it")), answered(1, said("Done.")), info, asked(3, said("Test it")))
    first, second = session.turns
    assert (first.client_compaction, second.client_compaction is None) == (None, False)
    assert [message.is_summary for message in second.messages] == [True, False]
    assert bodies(session)[2]["content"] == [{"type": "text", "text": "The build is fixed."}]
