"""Sessions of OpenCode 2, whose messages are in one table, and of databases that it has upgraded."""

from __future__ import annotations

import sqlite3
from base64 import b64encode
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from compaction.messages import Usage
from compaction.validation import validate
from importers.base import ClientCompaction, ImportedSession
from importers.reading import log_sources
from tests.importers.logs import document, read
from tests.importers.pairing import bodies

JSON = dict[str, Any]
START = 1_795_738_487_000

TABLES = """
CREATE TABLE session_v2 (id, project_id, parent_id, directory, title, version, time_created);
CREATE TABLE session_message (id, session_id, type, seq, time_created, data);
INSERT INTO session_v2 VALUES ('ses_f2', 'p1', 'ses_f1', '/work', NULL, '2.0.12', 1795738486561);
"""
#: The tables of earlier versions, which an upgrade keeps.
OLDER_TABLES = """
CREATE TABLE session (id, project_id, parent_id, directory, title, version, time_created);
CREATE TABLE message (id, session_id, time_created, data);
CREATE TABLE part (id, message_id, session_id, data);
INSERT INTO session VALUES ('ses_f2', 'p1', 'ses_f1', '/work', 'Parser', '1.18.33', 1795738486561);
"""


def message(number: int, kind: str, **fields: Any) -> JSON:
    return {"id": f"msg_{number}", "type": kind, "time": {"created": START + number * 1000}, **fields}


def answer(number: int, *content: JSON, tokens: Sequence[int] = (90, 0, 0, 20, 10)) -> JSON:
    uncached, cache_read, cache_write, output, reasoning = tokens
    cache = {"read": cache_read, "write": cache_write}
    counts = {"input": uncached, "output": output, "reasoning": reasoning, "cache": cache}
    model = {"id": "claude-sonnet-4-5", "providerID": "anthropic"}
    return message(
        number, "assistant", agent="build", model=model, content=[*content], cost=0.00125, tokens=counts
    )


def text(words: str) -> JSON:
    return {"type": "text", "text": words}


def tool(call: str, **state: Any) -> JSON:
    time = {"created": START, "completed": START + 2500}
    return {"type": "tool", "id": call, "name": "read", "state": state, "time": time}


NOTES = {
    "mime": "text/plain",
    "name": "notes.txt",
    "data": b64encode(b"Use tabs.").decode(),
    "source": {"type": "inline"},
}
IMAGE = {"mime": "image/png", "name": "a.png", "data": "QUJD", "source": {"type": "inline"}}
SHOT = {"type": "file", "mime": "image/png", "uri": "data:image/png;base64,QUJD"}

MESSAGES = [
    message(1, "model-switched", model={"id": "claude-sonnet-4-5"}),
    message(2, "user", text="Fix the parser", files=[NOTES, IMAGE]),
    answer(
        3,
        {"type": "reasoning", "text": "Hm.", "native": {"signature": "s1"}},
        tool("c1", status="completed", input={"filePath": "a.py"}, content=[text("x = 1"), SHOT]),
        tool("c2", status="error", input={}, error={"type": "unknown", "message": "No such file"}),
        tool("c3", status="streaming", input='{"fileP'),
        tokens=(3, 500, 40, 20, 5),
    ),
    message(4, "shell", command="ls", status="exited", output={"output": "a.py"}),
    message(5, "compaction", status="failed", reason="auto", error={"message": "Overloaded"}),
    message(
        6,
        "compaction",
        status="completed",
        reason="auto",
        summary="The parser is in a.py.",
        recent="[User]: Fix it",
        tokens={"input": 600, "output": 9, "reasoning": 0, "cache": {"read": 20, "write": 0}},
    ),
    message(7, "synthetic", text="Continue if you have next steps."),
    answer(8, text("Done.")),
    message(9, "idle", outcome="succeeded"),
]


def write_database(folder: Path, messages: Sequence[JSON], tables: str = TABLES) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "opencode.db", isolation_level=None)
    connection.executescript(tables)
    for seq, record in enumerate(messages):
        rest = {key: value for key, value in record.items() if key not in ("id", "type")}
        row = (record["id"], record["type"], seq, record["time"]["created"], orjson.dumps(rest).decode())
        connection.execute("INSERT INTO session_message VALUES (?, 'ses_f2', ?, ?, ?, ?)", row)
    return connection


def session_in(folder: Path) -> ImportedSession:
    [source] = log_sources([folder])
    [session], damages = read(source.read(), "opencode")
    assert damages == []
    return session


@pytest.fixture
def session(tmp_path: Path) -> ImportedSession:
    write_database(tmp_path, MESSAGES).close()
    return session_in(tmp_path)


def test_the_database(session: ImportedSession) -> None:
    assert (session.external_id, session.parent_external_id, session.title, session.model) == (
        "ses_f2",
        "ses_f1",
        "Fix the parser",
        "claude-sonnet-4-5",
    )
    assert session.metadata == {"cwd": "/work", "client_version": "2.0.12"}
    typed, said, results, shell, summary, hint, done = bodies(session)
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    attached = text("Attached file: notes.txt\n\nUse tabs.")
    assert typed["content"] == [text("Fix the parser"), attached, image]
    assert said["content"][0] == {"type": "thinking", "thinking": "Hm.", "signature": "s1"}
    assert [(block["content"], block.get("is_error", False)) for block in results["content"]] == [
        ([text("x = 1"), image], False),
        ("No such file", True),
        ("[Tool execution was interrupted]", True),
    ]
    assert [shell["content"], hint["content"]] == [
        [text("Shell command: ls\n\na.py")],
        [text("Continue if you have next steps.")],
    ]
    assert "The parser is in a.py." in summary["content"][0]["text"]
    assert "[User]: Fix it" in summary["content"][0]["text"]
    assert done == {"role": "assistant", "content": [text("Done.")]}
    assert validate(bodies(session), "anthropic") == ()


def test_usage_includes_the_reasoning(session: ImportedSession) -> None:
    assert [(turn.usage, turn.cost_microusd) for turn in session.turns if turn.usage] == [
        (Usage(uncached_tokens=3, cache_read_tokens=500, cache_write_tokens=40, output_tokens=25), 1250),
        (Usage(uncached_tokens=90, cache_read_tokens=0, cache_write_tokens=0, output_tokens=30), 1250),
    ]


def test_a_compaction_is_a_summary_of_the_earlier_messages(session: ImportedSession) -> None:
    [turn] = [turn for turn in session.turns if turn.client_compaction]
    assert turn.client_compaction == ClientCompaction(trigger="auto", tokens_before=620)
    flags = [(message.is_meta, message.is_summary) for message in turn.messages]
    assert flags == [(False, True), (True, False), (False, False)]
    [shell] = [message for turn in session.turns for message in turn.messages if message.source_id == "msg_4"]
    assert shell.is_meta


def test_an_export_is_the_same_session(session: ImportedSession) -> None:
    info = {
        "id": "ses_f2",
        "parentID": "ses_f1",
        "projectID": "p1",
        "location": {"directory": "/work"},
        "version": "2.0.12",
        "time": {"created": 1795738486561},
    }
    [exported], damages = read(document({"info": info, "messages": MESSAGES}), "opencode")
    assert (exported, damages) == (session, [])


def test_a_fork_has_the_response_ids_of_its_origin(session: ImportedSession, tmp_path: Path) -> None:
    copies = [record | {"id": f"msg_fork_{seq}"} for seq, record in enumerate(MESSAGES)]
    (tmp_path / "fork").mkdir()
    write_database(tmp_path / "fork", copies).close()
    ids = [turn.response_id for turn in session.turns]
    assert [turn.response_id for turn in session_in(tmp_path / "fork").turns] == ids
    assert len(set(ids)) == 3  # two, and None


def test_a_fork_of_a_session_of_version_1_has_its_response_ids() -> None:
    """Version 2 copies the message without the total of its tokens."""
    copied = answer(3, text("Done."), tokens=(90, 5, 0, 20, 10))
    copied["time"] |= {"completed": START + 4000}
    older = {"role": "assistant", "modelID": "claude-sonnet-4-5", "providerID": "anthropic"}
    older |= {"id": "msg_1a", "time": copied["time"], "tokens": {"total": 125, **copied["tokens"]}}
    part = {"id": "prt_1", "messageID": "msg_1a", "type": "text", "text": "Done."}
    info = {"id": "ses_f1", "projectID": "p1", "time": {"created": START}}
    logs = [
        document({"info": info, "messages": [each]}) for each in ({"info": older, "parts": [part]}, copied)
    ]
    [first], [second] = ([*read(log, "opencode")[0]] for log in logs)
    assert first.turns[0].usage == second.turns[0].usage
    assert first.turns[0].response_id == second.turns[0].response_id is not None


def test_an_upgraded_session_is_read_from_both_tables(tmp_path: Path) -> None:
    """The upgrade copies messages with their times. Some have new ids, and some lack content."""
    older = {"role": "user", "time": {"created": START + 2000}}
    part = {"type": "text", "text": "Fix the parser"}
    copies = [message(2, "user", text="Fix"), message(2, "synthetic", text="Read it.") | {"id": "msg_2b"}]
    with closing(write_database(tmp_path, [*copies, *MESSAGES[2:3]], OLDER_TABLES + TABLES)) as client:
        client.execute("INSERT INTO message VALUES ('msg_2', 'ses_f2', ?, ?)", [START + 2000, _json(older)])
        client.execute("INSERT INTO part VALUES ('prt_1', 'msg_2', 'ses_f2', ?)", [_json(part)])
    session = session_in(tmp_path)
    assert session.metadata["client_version"] == "2.0.12"
    typed, said, _ = bodies(session)
    assert typed["content"] == [text("Fix the parser")]
    assert said["role"] == "assistant"


def test_an_upgraded_database_contains_sessions_of_both_versions(tmp_path: Path) -> None:
    row = "('ses_f0', 'p1', NULL, '/work', 'Older', '1.18.33', 1795738480000)"
    tables = f"{OLDER_TABLES}{TABLES} INSERT INTO session VALUES {row};"
    write_database(tmp_path, MESSAGES, tables).close()
    assert [source.session for source in log_sources([tmp_path])] == ["ses_f0", "ses_f2"]


def _json(value: JSON) -> str:
    return orjson.dumps(value).decode()
