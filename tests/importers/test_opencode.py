"""OpenCode's sessions: the same from an export, the storage folder and the database."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import orjson
import pytest

from compaction.messages import Usage
from importers.base import ClientCompaction, ImportedSession, LogFile
from importers.reading import log_sources
from tests.importers.logs import document, jsonl, read
from tests.importers.pairing import bodies

JSON = dict[str, Any]

SESSION = {
    "id": "ses_f2",
    "projectID": "p1",
    "parentID": "ses_f1",
    "directory": "/work",
    "title": "Fix the parser",
    "version": "1.18.33",
    "time": {"created": 1_795_738_486_561},
}


def user(number: int, *parts: JSON) -> JSON:
    return {"info": _info(number, "user"), "parts": _parts(number, parts)}


def answer(number: int, *parts: JSON, tokens: JSON, cost: float = 0, **fields: Any) -> JSON:
    """Return a message of one model call."""
    facts = {"modelID": "claude-sonnet-4-5", "tokens": tokens, "cost": cost, "parentID": f"msg_{number - 1}"}
    steps = ({"type": "step-start"}, *parts, {"type": "step-finish", "tokens": tokens, "cost": cost})
    return {"info": _info(number, "assistant") | facts | fields, "parts": _parts(number, steps)}


def _info(number: int, role: str) -> JSON:
    time = {"created": 1_795_738_487_000 + number * 1000}
    return {"id": f"msg_{number}", "sessionID": "ses_f2", "role": role, "time": time}


def _parts(number: int, parts: tuple[JSON, ...]) -> list[JSON]:
    ids = {"sessionID": "ses_f2", "messageID": f"msg_{number}"}
    return [{**part, **ids, "id": f"prt_{number}_{index}"} for index, part in enumerate(parts)]


def text(words: str, **fields: Any) -> JSON:
    return {"type": "text", "text": words, **fields}


def tool(call: str, **state: Any) -> JSON:
    return {"type": "tool", "tool": "read", "callID": call, "state": {"input": {"filePath": "a.py"}, **state}}


def tokens(uncached: int, read: int, write: int, output: int, reasoning: int = 0, **total: int) -> JSON:
    cache = {"read": read, "write": write}
    return {"input": uncached, "output": output, "reasoning": reasoning, "cache": cache, **total}


IMAGE = {"type": "file", "mime": "image/png", "filename": "a.png", "url": "data:image/png;base64,QUJD"}
MESSAGES = [
    user(1, text("Fix the parser"), text("Called the Read tool", synthetic=True), IMAGE),
    answer(
        2,
        {"type": "reasoning", "text": "Hm.", "metadata": {"anthropic": {"signature": "s1"}}},
        tool("c1", status="completed", output="x = 1"),
        tool("c2", status="error", error="No such file"),
        tool("c3", status="running"),
        tokens=tokens(3, 500, 40, 20, reasoning=5, total=568),
        cost=0.00125,
    ),
    user(3, {"type": "compaction", "auto": True}),
    answer(4, text("The parser is in a.py."), tokens=tokens(600, 0, 0, 9), summary=True),
    user(5, text("Continue if you have next steps.", synthetic=True)),
    answer(6, text("Done."), tokens=tokens(90, 0, 0, 30, reasoning=10)),
    answer(7, tokens=tokens(0, 0, 0, 0), error={"name": "APIError"}),
]


def export() -> LogFile:
    return document({"info": SESSION, "messages": MESSAGES}, name="ses_f2.json")


def session_of(log: LogFile) -> ImportedSession:
    [session], damages = read(log, "opencode")
    assert damages == []
    return session


def test_an_export() -> None:
    session = session_of(export())
    assert (session.external_id, session.parent_external_id, session.agent) == (
        "ses_f2",
        "ses_f1",
        "opencode",
    )
    assert (session.title, session.metadata) == (
        "Fix the parser",
        {"cwd": "/work", "client_version": "1.18.33"},
    )
    source = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    typed = [{"type": "text", "text": "Fix the parser"}, {"type": "text", "text": "Called the Read tool"}]
    assert bodies(session)[0]["content"] == [*typed, {"type": "image", "source": source}]
    assert bodies(session)[1]["content"][0] == {"type": "thinking", "thinking": "Hm.", "signature": "s1"}
    assert [(block["content"], block.get("is_error", False)) for block in bodies(session)[2]["content"]] == [
        ("x = 1", False),
        ("No such file", True),
        ("[Tool execution was interrupted]", True),
    ]


def test_usage_and_cost_are_those_of_each_call() -> None:
    turns = [turn for turn in session_of(export()).turns if turn.usage]
    assert [turn.usage for turn in turns] == [
        Usage(uncached_tokens=3, cache_read_tokens=500, cache_write_tokens=40, output_tokens=25),
        Usage(uncached_tokens=600, cache_read_tokens=0, cache_write_tokens=0, output_tokens=9),
        # Older versions do not log a total, and include reasoning in the output.
        Usage(uncached_tokens=90, cache_read_tokens=0, cache_write_tokens=0, output_tokens=30),
    ]
    # A cost of 0 is that of a subscription or an unknown model: the price table applies.
    assert [turn.cost_microusd for turn in turns] == [1250, None, None]


def test_a_compaction_is_followed_by_its_summary() -> None:
    turn = session_of(export()).turns[2]
    assert turn.client_compaction == ClientCompaction(trigger="auto", tokens_before=600)
    flags = [(message.is_meta, message.is_summary) for message in turn.messages]
    assert flags == [(True, False), (False, True)]


def test_a_tool_that_still_runs_has_no_result() -> None:
    log = document({"info": SESSION, "messages": MESSAGES[:2]})
    assert len(bodies(session_of(log))[2]["content"]) == 2


def test_a_fork_has_the_response_ids_of_its_origin() -> None:
    renamed = orjson.loads(orjson.dumps(MESSAGES).replace(b"msg_", b"msg_a"))
    fork = document({"info": {**SESSION, "id": "ses_f3"}, "messages": renamed})
    ids = [turn.response_id for turn in session_of(export()).turns]
    assert [turn.response_id for turn in session_of(fork).turns] == ids
    assert len(set(ids)) == 4  # three, and None


@pytest.mark.parametrize("place", ["storage", "database"])
def test_the_storage_contains_the_same_session(tmp_path: Path, place: str) -> None:
    write = {"storage": _write_storage, "database": _write_database}[place]
    write(tmp_path)
    with sqlite3.connect(tmp_path / "other.db") as other:  # of another program
        other.execute("CREATE TABLE session (id)")
    [source] = log_sources([tmp_path])
    assert session_of(source.read()) == session_of(export())


def _write_storage(folder: Path) -> None:
    storage = folder / "storage"
    records = {f"session/p1/{SESSION['id']}": SESSION}
    for message in MESSAGES:
        info = message["info"]
        records[f"message/ses_f2/{info['id']}"] = info
        records |= {f"part/{info['id']}/{part['id']}": part for part in message["parts"]}
    for name, record in records.items():
        path = storage / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2))


def _write_database(folder: Path) -> None:
    with sqlite3.connect(folder / "opencode.db") as database:
        database.executescript(
            """
            CREATE TABLE session (id, project_id, parent_id, directory, title, version, time_created);
            CREATE TABLE message (id, session_id, data);
            CREATE TABLE part (id, message_id, session_id, data);
            """
        )
        keys = ("id", "projectID", "parentID", "directory", "title", "version")
        row = [*(SESSION[key] for key in keys), SESSION["time"]["created"]]
        database.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        for message in MESSAGES:
            info = message["info"]
            database.execute("INSERT INTO message VALUES (?, 'ses_f2', ?)", _row(info, "id"))
            rows = [_row(part, "id", "messageID") for part in message["parts"]]
            database.executemany("INSERT INTO part VALUES (?, ?, 'ses_f2', ?)", rows)


def _row(record: JSON, *ids: str) -> list[str]:
    """Return the ids, and the rest of the record as JSON, as OpenCode stores them."""
    rest = {key: value for key, value in record.items() if key not in (*ids, "sessionID")}
    return [*(record[name] for name in ids), orjson.dumps(rest).decode()]


def test_a_session_without_messages_is_recognized_and_empty() -> None:
    assert read(jsonl(SESSION), "opencode") == ([], [])
