"""Threads of Zed's agent, from its database."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard

from compaction.messages import Usage
from importers.base import ImportedSession
from importers.reading import log_sources
from tests.importers.logs import read
from tests.importers.pairing import bodies, misplaced

JSON = dict[str, Any]

TABLES = """
CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT, updated_at TEXT, data_type TEXT, data BLOB,
    parent_id TEXT, folder_paths TEXT, folder_paths_order TEXT, created_at TEXT)
"""
CALL = {"id": "c1", "name": "read_file", "raw_input": '{"path":"a.py"}', "input": {"path": "a.py"}}
MENTION = {"uri": {"File": {"abs_path": "/work/a.py"}}, "content": "x = 1"}
THREAD: JSON = {
    "title": "Fix the parser",
    "version": "0.3.0",
    "updated_at": "2026-07-15T09:10:00Z",
    "cumulative_token_usage": {},
    "request_token_usage": {"u1": {"input_tokens": 20, "output_tokens": 7, "cache_read_input_tokens": 900}},
    "model": {"provider": "anthropic", "model": "claude-sonnet-5"},
    "messages": [
        {"User": {"id": "u1", "content": [{"Text": "Fix "}, {"Mention": MENTION}]}},
        {
            "Agent": {
                "content": [
                    {"Thinking": {"text": "Hm.", "signature": "c2ln"}},
                    {"Text": "I look."},
                    {"ToolUse": CALL},
                ],
                "tool_results": {
                    "c1": {"tool_use_id": "c1", "is_error": True, "content": {"Text": "no such file"}}
                },
            }
        },
        {"Agent": {"content": [{"Text": "It is gone."}], "tool_results": {}}},
        {"Compaction": {"Summary": "a.py is gone."}},
        "Resume",
        {"Agent": {"content": [{"Text": "Done."}], "tool_results": {}}},
    ],
}
OLD: JSON = {
    "version": "0.2.0",
    "summary": "Old thread",
    "updated_at": "2025-06-15T09:10:00Z",
    "initial_project_snapshot": None,
    "request_token_usage": [{}, {"input_tokens": 30, "output_tokens": 4}],
    "messages": [
        {"id": 0, "role": "user", "segments": [{"type": "text", "text": "Look"}], "context": "<context>"},
        {
            "id": 1,
            "role": "assistant",
            "segments": [{"type": "text", "text": "Yes."}],
            "tool_uses": [{"id": "c1", "name": "grep", "input": {"regex": "x"}}],
            "tool_results": [{"tool_use_id": "c1", "is_error": False, "content": "a.py:1", "output": None}],
        },
    ],
}


def database(path: Path, *rows: tuple[str, JSON, str | None], packed: bool = True) -> Path:
    with sqlite3.connect(path) as connection:
        connection.execute(TABLES)
        for id, thread, parent in rows:
            data = orjson.dumps(thread)
            title = thread.get("title") or thread["summary"]
            kind, data = ("zstd", zstandard.compress(data)) if packed else ("json", data)
            row = (id, title, thread["updated_at"], kind, data, parent, "/work\n/other", "0,1", None)
            connection.execute("INSERT INTO threads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    connection.close()
    return path


def sessions_in(path: Path) -> list[ImportedSession]:
    found = []
    for source in log_sources([path]):
        sessions, damages = read(source.read(), "zed")
        assert damages == []
        found += sessions
    return found


@pytest.mark.parametrize("packed", [True, False])
def test_a_thread(tmp_path: Path, packed: bool) -> None:
    rows = [("t1", THREAD, None), ("t2", THREAD, "t1")]
    session, child = sessions_in(database(tmp_path / "threads.db", *rows, packed=packed))
    assert (session.external_id, session.title, session.model) == (
        "zed-t1",
        "Fix the parser",
        "claude-sonnet-5",
    )
    assert (session.metadata, child.parent_external_id) == ({"cwd": "/work"}, "zed-t1")
    assert not list(misplaced(session))
    first, second, third = session.turns
    assert [block["text"] for block in first.messages[0].body["content"]] == [
        "Fix ",
        "[@a.py](/work/a.py)",
        "<context>\n/work/a.py\nx = 1\n</context>",
    ]
    assert first.messages[1].body["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "a.py"}},
    ]
    [result] = second.messages[0].body["content"]
    assert result == {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [{"type": "text", "text": "no such file"}],
        "is_error": True,
    }
    assert [(message.is_summary, message.is_meta) for message in third.messages] == [
        (True, False),
        (False, True),
        (False, False),
    ]
    assert third.client_compaction is not None
    # Only the usage of the last call of a request is logged.
    usage = Usage(uncached_tokens=20, cache_read_tokens=900, cache_write_tokens=0, output_tokens=7)
    assert [turn.usage for turn in session.turns] == [None, None, usage]


def test_a_thread_of_an_older_version(tmp_path: Path) -> None:
    [session] = sessions_in(database(tmp_path / "threads.db", ("t1", OLD, None)))
    assert (session.title, len(session.turns)) == ("Old thread", 2)
    assert [body["role"] for body in bodies(session)] == ["user", "assistant", "user"]
    assert session.turns[0].usage is not None
    assert session.turns[0].usage.prompt_tokens == 30


def test_a_database_of_another_program_is_ignored(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "mail.db") as connection:
        connection.execute("CREATE TABLE threads (id, subject)")
    connection.close()
    assert list(log_sources([tmp_path])) == []
