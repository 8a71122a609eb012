"""Read the sessions of SQLite databases in which coding agents store them: OpenCode, goose, Crush and Zed.

Each session becomes one log, with one record of the client per line, so that its importer reads the same
records as in the client's files.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import zstandard

#: The first bytes of a SQLite database. If the two versions after the page size are 2, it has a separate log.
_MAGIC = b"SQLite format 3\x00"
_VERSIONS, _WITH_LOG = slice(18, 20), b"\x02\x02"

#: The queries for a session: its own record, then the others.
#: The column `_` contains the rest of the record as JSON. Parents precede their sub-agents.
_OPENCODE_SESSION = """
    SELECT id, project_id AS projectID, parent_id AS parentID, directory, title, version,
        json_object('created', time_created) AS time
    FROM %s WHERE id = ?
"""
_OPENCODE = (
    _OPENCODE_SESSION % "session",
    "SELECT data AS _, id, session_id AS sessionID FROM message WHERE session_id = ? ORDER BY id",
    """
    SELECT data AS _, id, session_id AS sessionID, message_id AS messageID
    FROM part WHERE session_id = ? ORDER BY id
    """,
)
_OPENCODE_2 = (
    _OPENCODE_SESSION % "session_v2",
    "SELECT data AS _, id, type, seq FROM session_message WHERE session_id = ? ORDER BY seq",
)
#: An upgrade to version 2 copies each message with its time, but not all of its content.
_OPENCODE_UPGRADED = (
    *_OPENCODE,
    _OPENCODE_SESSION % "session_v2",
    """
    SELECT data AS _, id, type, seq FROM session_message WHERE session_id = ?1 AND time_created NOT IN
        (SELECT time_created FROM message WHERE session_id = ?1)
    ORDER BY seq
    """,
)
_GOOSE = (
    "SELECT * FROM sessions WHERE id = ?",
    "SELECT * FROM messages WHERE session_id = ? ORDER BY created_timestamp, id",
)
_CRUSH = (
    "SELECT * FROM sessions WHERE id = ?",
    "SELECT * FROM messages WHERE session_id = ? ORDER BY created_at, rowid",
)
_ZED = ("SELECT *, data AS _ FROM threads WHERE id = ?",)

#: The tables of each client, and columns of `threads`, whose name is common.
_NAMES = """
    SELECT name FROM sqlite_master WHERE type = 'table'
    UNION ALL SELECT 'threads.' || name FROM pragma_table_info('threads')
"""
_CLIENTS: Mapping[frozenset[str], tuple[str, Sequence[str]]] = {
    frozenset({"session", "message", "part", "session_v2", "session_message"}): (
        """
        SELECT id FROM (SELECT id, time_created FROM session UNION SELECT id, time_created FROM session_v2)
        GROUP BY id ORDER BY min(time_created), id
        """,
        _OPENCODE_UPGRADED,
    ),
    frozenset({"session_v2", "session_message"}): (
        "SELECT id FROM session_v2 ORDER BY time_created, id",
        _OPENCODE_2,
    ),
    frozenset({"session", "message", "part"}): (
        "SELECT id FROM session ORDER BY time_created, id",
        _OPENCODE,
    ),
    frozenset({"sessions", "messages", "schema_version"}): (
        "SELECT id FROM sessions ORDER BY created_at, id",
        _GOOSE,
    ),
    frozenset({"sessions", "messages", "files", "goose_db_version"}): (
        "SELECT id FROM sessions ORDER BY created_at, id",
        _CRUSH,
    ),
    frozenset({"threads", "threads.data_type", "threads.data"}): (
        "SELECT id FROM threads ORDER BY updated_at, id",
        _ZED,
    ),
}

#: Columns that contain JSON, besides those whose name ends with "_json".
_JSON = ("_", "time", "parts")

#: The first bytes of content that a client has compressed, and its maximum size decompressed.
_ZSTD, _LARGEST_BYTES = b"\x28\xb5\x2f\xfd", 1 << 28


def is_database(path: Path) -> bool:
    """Return whether the file is a SQLite database."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def database_sessions(path: Path) -> list[str]:
    """Return the ids of the sessions in a client's database, [] for another. Raises `sqlite3.Error`."""
    with closing(_connect(path)) as connection:
        ids, _ = _client(connection)
        return [_text(row[0]) for row in connection.execute(ids)] if ids else []


def database_log(path: Path, session: str) -> bytes:
    """Return the records of a session, one per line. Raises `sqlite3.Error`."""
    with closing(_connect(path)) as connection:
        _, queries = _client(connection)
        return b"\n".join(_line(row) for query in queries for row in connection.execute(query, (session,)))


def _connect(path: Path) -> sqlite3.Connection:
    mode = "immutable=1" if _is_at_rest(path) else "mode=ro"
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)
    connection.row_factory = sqlite3.Row
    connection.text_factory = bytes
    return connection


def _is_at_rest(path: Path) -> bool:
    """Return whether the client is not running. SQLite would create a log, and fail in a read-only folder."""
    with path.open("rb") as file:
        has_log = file.read(_VERSIONS.stop)[_VERSIONS] == _WITH_LOG
    return has_log and not path.with_name(f"{path.name}-wal").exists()


def _client(connection: sqlite3.Connection) -> tuple[str, Sequence[str]]:
    names = {_text(row[0]) for row in connection.execute(_NAMES)}
    return next((client for needed, client in _CLIENTS.items() if needed <= names), ("", ()))


def _line(row: sqlite3.Row) -> bytes:
    """Return a row as an object on one line. JSON is copied: some of what can be read cannot be written."""
    columns = {name: row[name] for name in row.keys() if row[name] is not None}  # noqa: SIM118
    rest = b""
    if "_" in columns:
        rest = _unpacked(columns.pop("_")).strip()
        columns.pop("data", None)
    if rest.startswith(b"{") and rest.endswith(b"}"):
        rest = rest[1:-1].strip()
    fields = [rest, *(b'"%b":%b' % (name.encode(), _json(name, value)) for name, value in columns.items())]
    return b"{%b}" % b",".join(filter(None, fields)).replace(b"\r", b" ").replace(b"\n", b" ")


def _json(name: str, value: Any) -> bytes:
    if not isinstance(value, bytes):
        return orjson.dumps(value)
    value = _unpacked(value)
    text = _text(value)
    is_json = (name in _JSON or name.endswith("_json")) and _is_json(text)
    return value if is_json else orjson.dumps(text)


def _unpacked(value: Any) -> bytes:
    """Return the content of a column decompressed, or unchanged if it is damaged."""
    if not isinstance(value, bytes):
        return b""
    if not value.startswith(_ZSTD):
        return value
    try:
        return zstandard.ZstdDecompressor().stream_reader(value).read(_LARGEST_BYTES) or value
    except zstandard.ZstdError:
        return value


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
