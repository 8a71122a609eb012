"""Read the sessions of SQLite databases in which coding agents store them: OpenCode and goose.

Each session becomes one log, with one record of the client per line, so that its importer reads the same
records as in the client's files.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import orjson

#: The first bytes of a SQLite database.
_MAGIC = b"SQLite format 3\x00"

#: The queries for a session: its own record, then the others.
#: The column `_` contains the rest of the record as JSON. Parents precede their sub-agents.
_OPENCODE = (
    """
    SELECT id, project_id AS projectID, parent_id AS parentID, directory, title, version,
        json_object('created', time_created) AS time
    FROM session WHERE id = ?
    """,
    "SELECT data AS _, id, session_id AS sessionID FROM message WHERE session_id = ? ORDER BY id",
    """
    SELECT data AS _, id, session_id AS sessionID, message_id AS messageID
    FROM part WHERE session_id = ? ORDER BY id
    """,
)
_GOOSE = (
    "SELECT * FROM sessions WHERE id = ?",
    "SELECT * FROM messages WHERE session_id = ? ORDER BY created_timestamp, id",
)
_CLIENTS: Mapping[frozenset[str], tuple[str, Sequence[str]]] = {
    frozenset({"session", "message", "part"}): (
        "SELECT id FROM session ORDER BY time_created, id",
        _OPENCODE,
    ),
    frozenset({"sessions", "messages", "schema_version"}): (
        "SELECT id FROM sessions ORDER BY created_at, id",
        _GOOSE,
    ),
}

#: Columns that contain JSON, besides those whose name ends with "_json".
_JSON = ("_", "time")


def is_database(path: Path) -> bool:
    """Return whether the file is a SQLite database."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def database_sessions(path: Path) -> list[str]:
    """Return the ids of the sessions in a client's database, or [] if it is not one that can be read."""
    try:
        with closing(_connect(path)) as connection:
            ids, _ = _client(connection)
            return [str(row[0]) for row in connection.execute(ids)] if ids else []
    except sqlite3.Error:
        return []


def database_log(path: Path, session: str) -> bytes:
    """Return the records of a session, one per line. Raises `sqlite3.Error`."""
    with closing(_connect(path)) as connection:
        _, queries = _client(connection)
        return b"\n".join(
            orjson.dumps(record) for query in queries for record in _records(connection, query, session)
        )


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    return connection


def _client(connection: sqlite3.Connection) -> tuple[str, Sequence[str]]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    tables = {row[0] for row in rows}
    return next((client for needed, client in _CLIENTS.items() if needed <= tables), ("", ()))


def _records(connection: sqlite3.Connection, query: str, session: str) -> Iterator[dict[str, Any]]:
    for row in connection.execute(query, (session,)):
        record = {name: _value(name, row[name]) for name in row.keys() if row[name] is not None}  # noqa: SIM118
        whole = record.pop("_", {})
        yield {**whole, **record} if isinstance(whole, dict) else record


def _value(name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str) and (name in _JSON or name.endswith("_json")):
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(value)
    return value
