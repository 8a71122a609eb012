"""Crush's sessions, from its database."""

from __future__ import annotations

import base64
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard

from importers.base import Damage, ImportedSession
from importers.discovery import discovered_folders
from importers.reading import log_sources
from importers.registry import recognize
from tests.importers.logs import jsonl, read
from tests.importers.pairing import bodies

JSON = dict[str, Any]

TABLES = """
CREATE TABLE goose_db_version (id INTEGER);
CREATE TABLE files (id TEXT);
CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT, message_count INTEGER,
    prompt_tokens INTEGER, completion_tokens INTEGER, cost REAL, updated_at INTEGER, created_at INTEGER,
    summary_message_id TEXT);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts BLOB, model TEXT,
    created_at INTEGER, updated_at INTEGER, finished_at INTEGER, provider TEXT, is_summary_message INTEGER);
INSERT INTO sessions VALUES ('s1', NULL, 'Fix the parser', 9, 900, 40, 0.25, 1795783700, 1795783600, 'm6');
INSERT INTO sessions VALUES ('m2$$c1', 's1', 'New Agent Session', 2, 10, 5, 0, 1795783700, 1795783605, NULL);
INSERT INTO sessions VALUES ('title-s1', 's1', 'Generate a title', 0, 10, 5, 0, 1795783700, 1795783600, NULL);
"""


def text(words: str) -> JSON:
    return {"type": "text", "data": {"text": words}}


def part(kind: str, **data: Any) -> JSON:
    return {"type": kind, "data": data}


FINISH = part("finish", reason="tool_use", time=1_795_783_601)
NOTE = {"Path": "n.md", "MIMEType": "text/plain", "Data": base64.b64encode(b"a note").decode()}
MESSAGES: Sequence[tuple[str, str, str, Sequence[JSON]]] = (
    ("m1", "s1", "user", [text("Fix the parser"), part("binary", **NOTE)]),
    (
        "m2",
        "s1",
        "assistant",
        [
            part("reasoning", thinking="Hm.", signature="c2ln"),
            text("I look.\n"),
            part("tool_call", id="c1", name="agent", input='{"prompt": "Look"}', finished=True),
            part("tool_call", id="c2", name="view", input='{"file_path": "a.py"}', finished=True),
            FINISH,
        ],
    ),
    (
        "m3",
        "s1",
        "tool",
        [
            part("tool_result", tool_call_id="c1", name="agent", content="Found."),
            part("tool_result", tool_call_id="c2", name="view", content="no such file", is_error=True),
        ],
    ),
    ("m4", "s1", "assistant", [FINISH]),
    ("m5", "s1", "assistant", [text("Fixed."), FINISH]),
    ("m6", "s1", "assistant", [text("The parser was fixed."), FINISH]),
    ("m7", "s1", "user", [text("Thanks")]),
    ("m8", "s1", "assistant", [text("Welcome."), FINISH]),
    ("n1", "m2$$c1", "user", [text("Look")]),
    ("n2", "m2$$c1", "assistant", [text("Found."), FINISH]),
)


def database(folder: Path, *, compressed: bool = False) -> Path:
    folder.mkdir(parents=True)
    path = folder / "crush.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(TABLES)
        for number, (id, session, role, parts) in enumerate(MESSAGES):
            data = orjson.dumps(parts)
            data = zstandard.compress(data) if compressed else data
            model = "claude-sonnet-5" if role == "assistant" else None
            row = (id, session, role, data, model, 1_795_783_600 + number, 0, 0, "anthropic", id == "m6")
            connection.execute(f"INSERT INTO messages VALUES ({', '.join('?' * len(row))})", row)
    connection.close()
    return path


def sessions_in(path: Path) -> list[ImportedSession]:
    found = []
    for source in log_sources([path]):
        sessions, damages = read(source.read(), "crush")
        assert damages == []
        found += sessions
    return found


@pytest.mark.parametrize("compressed", [False, True])
def test_a_database(tmp_path: Path, compressed: bool) -> None:
    session, child = sessions_in(database(tmp_path / "work" / ".crush", compressed=compressed))
    assert (session.external_id, session.title, session.model) == (
        "crush-s1",
        "Fix the parser",
        "claude-sonnet-5",
    )
    assert session.metadata == {
        "cwd": str(tmp_path / "work"),
        "input_tokens": 900,
        "output_tokens": 40,
        "cost_microusd": 250_000,
    }
    assert (child.external_id, child.parent_external_id) == ("crush-m2$$c1", "crush-s1")
    attached = "<file path='n.md'>\n\na note\n</file>\n"
    assert attached in bodies(session)[0]["content"][0]["text"]
    assert bodies(session)[1]["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c1", "name": "agent", "input": {"prompt": "Look"}},
        {"type": "tool_use", "id": "c2", "name": "view", "input": {"file_path": "a.py"}},
    ]
    assert bodies(session)[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "Found."},
        {"type": "tool_result", "tool_use_id": "c2", "content": "no such file", "is_error": True},
    ]
    assert [(len(turn.messages), turn.client_compaction is not None) for turn in session.turns] == [
        (2, False),
        (2, False),
        (3, True),
    ]
    summary = session.turns[2].messages[0]
    assert (summary.body["role"], summary.is_summary) == ("user", True)


def test_damaged_messages_are_reported(tmp_path: Path) -> None:
    path = database(tmp_path / ".crush", compressed=True)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE messages SET parts = substr(parts, 1, 20) WHERE id = 'm5'")
        connection.execute("UPDATE messages SET parts = '[5]' WHERE id = 'm7'")
    connection.close()
    log = next(iter(log_sources([path]))).read()
    importer = recognize(log)
    assert importer is not None
    items = list(importer.read(log))
    assert [item.line for item in items if isinstance(item, Damage)] == [6, 8]
    [session] = [item for item in items if isinstance(item, ImportedSession)]
    assert len(bodies(session)) == 5


def test_its_projects_are_discovered(tmp_path: Path) -> None:
    folder = database(tmp_path / "work" / ".crush").parent
    shared = tmp_path / ".local" / "share" / "crush"
    shared.mkdir(parents=True)
    projects = [
        {"path": str(tmp_path / "work"), "data_dir": str(folder)},
        {"path": "/gone", "data_dir": ".crush"},
        {"path": f"/{'unreadable' * 30}", "data_dir": ".crush"},
    ]
    (shared / "projects.json").write_bytes(orjson.dumps({"projects": projects}))
    assert discovered_folders({}, tmp_path) == [folder]
    assert discovered_folders({"CRUSH_GLOBAL_DATA": str(shared)}, tmp_path / "home") == [folder]
    (shared / "projects.json").write_bytes(b"[1]")
    assert discovered_folders({}, tmp_path) == []


def test_a_continuation_is_not_typed_and_a_router_chooses_the_model() -> None:
    facts = {"id": "s1", "title": "", "message_count": 3, "prompt_tokens": 0, "completion_tokens": 0}
    typed = {"id": "m1", "role": "user", "parts": [text("Fix the parser")]}
    answer = {"id": "m2", "role": "assistant", "model": "auto", "prism_model_id": "claude-sonnet-5"}
    continued = {"id": "m3", "role": "user", "parts": [part("text", text="Continue.", hidden=True)]}
    [session], _ = read(jsonl(facts, typed, {**answer, "parts": [text("I look.")]}, continued), "crush")
    marks = [message.is_meta for turn in session.turns for message in turn.messages]
    assert (session.model, marks) == ("claude-sonnet-5", [False, False, True])
