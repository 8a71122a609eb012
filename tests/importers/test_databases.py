"""Databases of coding agents that are locked, damaged, in use, or contain odd JSON."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from importers.base import Damage, ImportedSession
from importers.reading import UnreadableLogError, log_sources
from importers.registry import recognize
from tests.importers.pairing import bodies

TABLES = """
CREATE TABLE session (id, project_id, parent_id, directory, title, version, time_created);
CREATE TABLE message (id, session_id, data);
CREATE TABLE part (id, message_id, session_id, data);
INSERT INTO session VALUES ('ses_1', 'p', NULL, '/work', 'Parser', '1', 1795738486561);
INSERT INTO message VALUES ('msg_1', 'ses_1', '{"role": "user"}');
"""
TEXT = '{"type": "text", "text": "Fix the parser"}'


def database(folder: Path, *parts: str, setup: str = "") -> sqlite3.Connection:
    """Create a database of OpenCode with one message."""
    connection = sqlite3.connect(folder / "opencode.db", isolation_level=None)
    connection.executescript(setup + TABLES)
    rows = [(f"prt_{number}", part) for number, part in enumerate(parts)]
    connection.executemany("INSERT INTO part VALUES (?, 'msg_1', 'ses_1', CAST(? AS TEXT))", rows)
    return connection


def read(folder: Path) -> tuple[ImportedSession, list[str]]:
    """Return the session in the folder, and the reasons of its damaged parts."""
    [source] = log_sources([folder])
    log = source.read()
    importer = recognize(log)
    assert importer is not None
    items = list(importer.read(log))
    [session] = [item for item in items if isinstance(item, ImportedSession)]
    return session, [item.reason for item in items if isinstance(item, Damage)]


def test_a_locked_database_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **options: connect(*args, **options, timeout=0))
    with closing(database(tmp_path, TEXT)) as client:
        client.execute("BEGIN EXCLUSIVE")
        [source] = log_sources([tmp_path])
        with pytest.raises(UnreadableLogError, match="database is locked"):
            source.read()


def test_a_truncated_database_is_reported(tmp_path: Path) -> None:
    database(tmp_path, TEXT).close()
    path = tmp_path / "opencode.db"
    path.write_bytes(path.read_bytes()[:-5_000])
    [source] = log_sources([path])
    with pytest.raises(UnreadableLogError, match="malformed"):
        source.read()


def test_a_database_with_a_write_ahead_log_is_read_without_creating_files(tmp_path: Path) -> None:
    with closing(database(tmp_path, TEXT, setup="PRAGMA journal_mode = WAL;")):
        assert read(tmp_path)[0].title == "Parser"  # the client is running
    assert read(tmp_path)[0].title == "Parser"
    assert [path.name for path in tmp_path.iterdir()] == ["opencode.db"]


def test_json_that_cannot_be_written_again(tmp_path: Path) -> None:
    half = '{"type": "text", "text": "Half \\ud83d"}'  # JavaScript cuts characters in two
    deep = f'{{"type": "text", "text": "Deep",\r\n"state": {"[" * 400}{"]" * 400}}}'
    database(tmp_path, half, deep, '{"type": "text", "text": "Long", "size": 1e999}', TEXT).close()
    session, damages = read(tmp_path)
    [body] = bodies(session)
    assert [block["text"] for block in body["content"]] == ["Half ?", "Deep", "Long", "Fix the parser"]
    assert damages == []


def test_damaged_rows_are_reported(tmp_path: Path) -> None:
    with closing(database(tmp_path, '{"type": "te', TEXT)) as client:
        client.execute(
            "UPDATE message SET data = CAST(x'7b22726f6c65223a2275736572222c2278223a22e9227d' AS TEXT)"
        )
    session, damages = read(tmp_path)
    assert bodies(session) == [{"role": "user", "content": [{"type": "text", "text": "Fix the parser"}]}]
    assert damages[0] == "invalid UTF-8 was replaced"
    assert damages[1].startswith("not JSON: ")
