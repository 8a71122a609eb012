"""goose's sessions: the same from an export, a session file and the database."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from compaction.messages import Usage
from importers.base import ImportedSession
from importers.reading import log_sources
from tests.importers.logs import document, jsonl, read
from tests.importers.pairing import bodies

JSON = dict[str, Any]

FACTS = {"id": "20260715_1", "working_dir": "/work", "created_at": "2026-07-15 09:00:00"}
HIDDEN, INSERTED = {"userVisible": True, "agentVisible": False}, {"userVisible": False, "agentVisible": True}


def message(number: int, role: str, *content: JSON, **metadata: Any) -> JSON:
    id = f"msg_{number}"
    return {
        "id": id,
        "role": role,
        "created": 1_784_710_800 + number,
        "content": content,
        "metadata": metadata,
    }


def text(words: str, **fields: Any) -> JSON:
    return {"type": "text", "text": words, **fields}


def request(call: str) -> JSON:
    value = {"name": "developer__shell", "arguments": {"command": "ls"}}
    return {"type": "toolRequest", "id": call, "toolCall": {"status": "success", "value": value}}


def response(call: str, value: Any) -> JSON:
    return {"type": "toolResponse", "id": call, "toolResult": {"status": "success", "value": value}}


OUTPUT = [
    text("a.py", annotations={"audience": ["assistant"]}),
    text("1", annotations={"audience": ["user"]}),
]
MESSAGES = [
    message(1, "user", text("Fix the parser"), **HIDDEN),
    message(2, "assistant", text("I look."), inference={"requestedModel": "gpt-5"}, **HIDDEN),
    message(3, "assistant", request("c1"), **HIDDEN),
    message(4, "user", response("c1", OUTPUT), **HIDDEN),
    message(5, "assistant", text("Compacted."), **HIDDEN),
    message(6, "user", text("The parser is in a.py."), **INSERTED),
    message(7, "user", text("Go on")),
    message(8, "assistant", request("c2"), {"type": "systemNotification", "msg": "!"}),
    message(9, "user", response("c2", {"content": [text("failed")], "isError": True})),
]


def session_of(*logs: Any) -> ImportedSession:
    [session], damages = read(*logs, "goose")
    assert damages == []
    return session


def test_an_export() -> None:
    usage = {"input_tokens": 900, "output_tokens": 40, "cache_read_input_tokens": 800}
    facts = {**FACTS, "name": "Parser", "accumulated_usage": usage, "accumulated_cost": 0.5}
    session = session_of(document({**facts, "conversation": MESSAGES}))
    assert (session.external_id, session.title, session.model) == ("goose-20260715_1", "Parser", "gpt-5")
    assert session.metadata == {"cwd": "/work", **usage, "cost_microusd": 500_000}
    call = {"type": "tool_use", "id": "c1", "name": "developer__shell", "input": {"command": "ls"}}
    assert bodies(session)[1:3] == [
        {"role": "assistant", "content": [text("I look."), call]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [text("a.py")]}],
        },
    ]
    assert bodies(session)[-1]["content"][0]["is_error"]
    marked = [turn for turn in session.turns if turn.client_compaction]
    assert [(each.is_summary, each.is_meta) for turn in marked for each in turn.messages] == [
        (True, True),
        (False, False),
        (False, False),
    ]


def test_the_last_message_of_a_response_contains_its_usage() -> None:
    usage = {"inputTokens": 900, "outputTokens": 40, "cacheReadTokens": 600, "cacheWriteTokens": 200}
    reported = {**usage, "cost": 0.002, "elapsedMs": 1500, "timeToFirstTokenMs": 300}
    models = {"requestedModel": "auto", "resolvedModel": "claude-sonnet-4-5"}
    messages = [
        message(1, "user", text("Fix the parser")),
        message(2, "assistant", text("I look."), inference=models),
        message(3, "assistant", request("c1"), inference=models, usage=reported),
        message(4, "user", response("c1", OUTPUT)),
        message(5, "assistant", text("Done."), usage=reported),
        message(6, "assistant", text("Really."), usage={"inputTokens": 950, "outputTokens": 4}),
    ]
    first, second, third = session_of(jsonl(FACTS, *messages)).turns
    parts = {"uncached_tokens": 100, "cache_read_tokens": 600, "cache_write_tokens": 200, "output_tokens": 40}
    assert (first.usage, first.cost_microusd, first.model) == (Usage(**parts), 2000, "claude-sonnet-4-5")
    assert (first.first_token_ms, first.duration_ms, first.response_id) == (300, 1500, "goose-msg_3")
    assert (second.usage, third.usage) == (
        Usage(**parts),
        Usage(uncached_tokens=950, cache_read_tokens=0, cache_write_tokens=0, output_tokens=4),
    )


def test_what_only_the_user_sees_is_not_a_compaction() -> None:
    notice = {"type": "systemNotification", "notificationType": "inlineMessage", "msg": "Credits are low."}
    shown = text("Only for you.", annotations={"audience": ["user"]})
    messages = [
        message(1, "user", text("Fix the parser"), shown),
        message(2, "assistant", {"type": "reasoning", "text": "Hm."}, text("I look.")),
        message(3, "assistant", notice, **HIDDEN),
        message(4, "user", text("/prompts"), **HIDDEN),
        message(5, "user", text("Go on")),
    ]
    session = session_of(jsonl(FACTS, *messages))
    assert [turn.client_compaction for turn in session.turns] == [None, None]
    assert [body["content"] for body in bodies(session)[:2]] == [
        [text("Fix the parser")],
        [{"type": "thinking", "thinking": "Hm."}, text("I look.")],
    ]


def test_files_and_the_database_contain_the_same_session(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "sessions.db") as database:
        database.executescript(
            """
            CREATE TABLE schema_version (version);
            CREATE TABLE sessions (id, name, working_dir, created_at, model_config_json, recipe_json);
            CREATE TABLE messages (
                id INTEGER PRIMARY KEY, message_id, session_id, role, content_json, created_timestamp,
                metadata_json
            );
            INSERT INTO sessions VALUES
                ('20260715_1', '', '/work', '2026-07-15 09:00:00', '{"model_name": "gpt-5"}', NULL);
            """
        )
        for each in MESSAGES:
            content, metadata = (
                orjson.dumps(each["content"]).decode(),
                orjson.dumps(each["metadata"]).decode(),
            )
            database.execute(
                "INSERT INTO messages VALUES (NULL, ?, '20260715_1', ?, ?, ?, ?)",
                (each["id"], each["role"], content, each["created"], metadata),
            )
    [source] = log_sources([tmp_path])
    assert session_of(source.read()) == session_of(jsonl(FACTS, *MESSAGES))


def test_a_first_line_with_invalid_utf8_is_recognized() -> None:
    log = jsonl({**FACTS, "working_dir": "/work?"}, *MESSAGES)
    [session], damages = read(replace(log, data=log.data.replace(b"/work?", b"/work\xe9")), "goose")
    assert session.metadata == {"cwd": "/work\ufffd"}
    assert [(damage.line, damage.reason) for damage in damages] == [(1, "invalid UTF-8 was replaced")]
