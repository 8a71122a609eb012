"""Event logs of Kimi Code, as version 2.1 records them: with tools, a sub-agent and a compaction."""

from __future__ import annotations

from pathlib import Path

import pytest

from accounts.models import Project
from compaction.messages import Usage
from importers.base import ImportedSession, LogFile
from importers.discovery import discovered_folders
from importers.reading import log_sources
from importers.registry import recognize
from sessions.services.imports.store import session_import
from tests.importers.logs import jsonl, read
from tests.importers.pairing import bodies, misplaced

FOLDER = Path(__file__).parent / "recorded" / "kimi-code"
MAIN = FOLDER / "session_5203381" / "agents" / "main" / "wire.jsonl"


def session_of(log: LogFile) -> ImportedSession:
    [session], damages = read(log, "kimi-code")
    assert damages == []
    return session


def test_a_session_with_a_subagent() -> None:
    child, session = (session_of(source.read()) for source in log_sources([FOLDER]))
    assert (session.external_id, session.title) == ("session_5203381", "Please read both files [two]")
    assert (session.model, session.metadata) == ("kimi-k2", {"cwd": "/work"})
    assert session.system.startswith("You are Kimi Code CLI")
    assert [tool["name"] for tool in session.tools] == ["Read"]
    assert not list(misplaced(session))
    assert (child.external_id, child.parent_external_id) == ("session_5203381:agent-0", "session_5203381")
    first, second = session.turns[:2]
    assert [message.is_meta for message in first.messages] == [False, True, False]
    answer = first.messages[-1].body["content"]
    assert [block["type"] for block in answer] == ["thinking", "text", "tool_use", "tool_use"]
    assert answer[2]["input"] == {"path": "a.txt"}
    assert first.usage == Usage(
        uncached_tokens=11189, cache_read_tokens=11189, cache_write_tokens=0, output_tokens=23
    )
    assert (first.response_id, first.first_token_ms, first.duration_ms) == ("chatcmpl-3907", 225, 328)
    succeeded, failed = second.messages[0].body["content"]
    assert succeeded["content"][0] == {"type": "text", "text": "1\talpha beta"}
    assert failed["is_error"]


def test_a_compaction() -> None:
    last = session_of(next(source for source in log_sources([MAIN])).read()).turns[-1]
    assert last.client_compaction is not None
    assert (last.client_compaction.trigger, last.client_compaction.tokens_before) == ("auto", 21_239)
    summary = last.messages[0]
    assert summary.is_summary
    assert summary.body["content"][0]["text"].startswith("The conversation so far has been compacted")


@pytest.mark.slow
@pytest.mark.django_db
def test_a_log_that_grows(project: Project) -> None:
    lines = MAIN.read_bytes().splitlines()
    whole = session_of(LogFile(name=str(MAIN), data=MAIN.read_bytes()))
    for end in (14, 17, 30, 50, len(lines)):
        log = LogFile(name=str(MAIN), data=b"\n".join(lines[:end]))
        result = session_import(project=project, imported=session_of(log))
    result.session.refresh_from_db()
    assert (result.session.turn_count, result.session.message_count) == (len(whole.turns), len(bodies(whole)))
    assert result.session.output_tokens == sum(turn.usage.output_tokens for turn in whole.turns if turn.usage)


def test_a_damaged_call_leaves_no_empty_answer() -> None:
    call = {"type": "tool.call", "stepUuid": "step", "toolCallId": "c1"}
    prompt = {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    log = jsonl(
        {"protocol_version": "1"},
        {"type": "context.append_message", "message": prompt},
        {"type": "context.append_loop_event", "event": call},
    )
    [session], [damage] = read(log, "kimi-code")
    assert (bodies(session), damage.line) == ([prompt], 3)


def test_the_settings_of_earlier_versions() -> None:
    prompt = {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    step = {"stepUuid": "s1", "part": {"type": "text", "text": "Hello."}}
    log = jsonl(
        {"type": "metadata", "protocol_version": "1.4", "created_at": 1_795_738_486_561},
        {"type": "config.update", "cwd": "/work", "modelAlias": "kimi-k2", "systemPrompt": "Be brief."},
        {"type": "tools.set_active_tools", "names": []},
        {"type": "permission.set_mode", "mode": "auto"},
        {"type": "config.update", "thinkingEffort": "high"},
        {"type": "context.append_message", "message": prompt},
        {"type": "context.append_loop_event", "event": {"type": "content.part", **step}},
    )
    assert recognize(log).name == "kimi-code"
    session = session_of(log)
    assert (session.system, session.model, session.metadata) == ("Be brief.", "kimi-k2", {"cwd": "/work"})


def test_its_logs_are_discovered(tmp_path: Path) -> None:
    folder = tmp_path / ".kimi-code" / "sessions" / "wd_app" / "session_1" / "agents"
    folder.mkdir(parents=True)
    assert discovered_folders({}, tmp_path) == [folder]
