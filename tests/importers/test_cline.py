"""Tasks of Cline and Roo Code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from compaction.messages import Usage
from importers.base import ImportedSession, LogFile
from importers.reading import log_sources
from tests.importers.logs import document, read
from tests.importers.pairing import bodies

JSON = dict[str, Any]

START = 1_795_738_486_000  # milliseconds

CALL = {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "a.py"}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "x = 1"}


def message(role: str, at: int, *blocks: JSON, **fields: Any) -> JSON:
    return {"role": role, "content": list(blocks), "ts": START + at, **fields}


def text(words: str, **fields: Any) -> JSON:
    return {"type": "text", "text": words, **fields}


def request(at: int, uncached: int, read: int, output: int, cost: float) -> JSON:
    facts = {"tokensIn": uncached, "tokensOut": output, "cacheReads": read, "cacheWrites": 0, "cost": cost}
    return {"ts": START + at, "type": "say", "say": "api_req_started", "text": orjson.dumps(facts).decode()}


HISTORY = [
    message(
        "user",
        1_000,
        text("<task>\nFix the parser\n</task>"),
        text("<environment_details>\n# Files\n</environment_details>"),
    ),
    message("assistant", 3_000, text("I look.", reasoning_details=[]), CALL),
    message("user", 4_000, RESULT, text("<environment_details>\n</environment_details>")),
    message("assistant", 9_000, text("Done.")),
]


def write_task(folder: Path, *requests: JSON, history: list[JSON] = HISTORY) -> None:
    folder.mkdir(parents=True)
    say = {"ts": 900, "type": "say", "say": "task", "text": "Fix the parser"}
    (folder / "api_conversation_history.json").write_bytes(orjson.dumps(history))
    (folder / "ui_messages.json").write_bytes(orjson.dumps([say, *requests]))
    (folder / "task_metadata.json").write_bytes(b'{"files_in_context": []}')


def session_in(folder: Path) -> ImportedSession:
    [source] = log_sources([folder])
    [session], damages = read(source.read(), "cline")
    assert damages == []
    return session


def test_a_task_of_the_extension(tmp_path: Path) -> None:
    write_task(tmp_path / "1700", request(2_000, 3, 500, 20, 0.5), request(8_000, 9, 600, 7, 0.25))
    session = session_in(tmp_path)
    assert (session.external_id, session.title, session.agent) == ("1700", "Fix the parser", "cline")
    assert bodies(session)[1:3] == [
        {"role": "assistant", "content": [text("I look."), CALL]},
        {"role": "user", "content": [RESULT, HISTORY[2]["content"][1]]},
    ]
    assert [(turn.usage, turn.cost_microusd) for turn in session.turns] == [
        (Usage(uncached_tokens=3, cache_read_tokens=500, cache_write_tokens=0, output_tokens=20), 500_000),
        (Usage(uncached_tokens=9, cache_read_tokens=600, cache_write_tokens=0, output_tokens=7), 250_000),
    ]


def test_a_failed_request_belongs_to_no_answer(tmp_path: Path) -> None:
    failed = request(7_000, 0, 0, 1, 0.1)
    write_task(tmp_path / "1700", request(2_000, 800, 500, 20, 0.5), failed, request(8_000, 900, 600, 7, 0.2))
    turns = session_in(tmp_path).turns
    assert [turn.cost_microusd for turn in turns] == [500_000, 200_000]


def test_tokens_that_contain_the_cached_ones(tmp_path: Path) -> None:
    write_task(tmp_path / "1700", request(2_000, 800, 500, 20, 0.5), request(8_000, 900, 600, 7, 0.2))
    usages = [turn.usage for turn in session_in(tmp_path).turns]
    assert [(usage.uncached_tokens, usage.cache_read_tokens) for usage in usages if usage] == [
        (300, 500),
        (300, 600),
    ]


def test_the_summary_of_roo_code_is_a_compaction(tmp_path: Path) -> None:
    summary = message("user", 9_500, text("The parser is in a.py."), isSummary=True)
    write_task(tmp_path / "1700", history=[*HISTORY, summary, message("assistant", 9_900, text("Ok."))])
    last = session_in(tmp_path).turns[-1]
    assert last.client_compaction is not None
    assert [each.is_summary for each in last.messages] == [True, False]


def test_an_uploaded_history_has_an_id_of_its_own() -> None:
    other = [message("user", 1_000, text("<task>\nAnother\n</task>")), *HISTORY[1:]]
    name = "api_conversation_history.json"
    [first], _ = read(document(HISTORY, name), "cline")
    [second], _ = read(document(other, name), "cline")
    assert first.external_id != second.external_id


def test_a_session_of_newer_versions(tmp_path: Path) -> None:
    origin = {"source": "cli", "version": "3.0.65", "parentThreadId": "17_a"}
    metrics = {"inputTokens": 560, "outputTokens": 13, "cacheReadTokens": 500, "cacheWriteTokens": 0}
    info = {"id": "gpt-5", "provider": "openai"}
    output = [{"query": "ls", "result": "a.py", "success": True}]
    notice = message("assistant", 5_000, text("No key."), metadata={"displayOnly": True})
    messages = [
        message("user", 1_000, text('<user_input mode="act">List the files</user_input>'), id="m1"),
        message("assistant", 2_000, CALL, id="m2", modelInfo=info, metrics=metrics),
        message("user", 3_000, {**RESULT, "name": "read_file", "content": output}, id="m3"),
        notice,
    ]
    facts = {"session_id": "17_b", "cwd": "/work", "metadata": {"title": "Files", "git": {"branch": "fix"}}}
    whole = {
        "version": 1,
        "sessionId": "17_b",
        "origin": origin,
        "messages": messages,
        "system_prompt": "Be.",
    }
    (tmp_path / "17_b.json").write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2))
    (tmp_path / "17_b.messages.json").write_bytes(orjson.dumps(whole, option=orjson.OPT_INDENT_2))
    session = session_in(tmp_path)
    assert (session.external_id, session.parent_external_id, session.title) == ("17_b", "17_a", "Files")
    assert (session.system, session.model) == ("Be.", "gpt-5")
    assert session.metadata == {"cwd": "/work", "git_branch": "fix", "client_version": "3.0.65"}
    sent = '[{"query":"ls","result":"a.py","success":true}]'
    assert [
        body["content"][0].get("text") or body["content"][0].get("content") for body in bodies(session)
    ] == [
        "List the files",
        None,
        sent,
    ]
    expected = Usage(uncached_tokens=60, cache_read_tokens=500, cache_write_tokens=0, output_tokens=13)
    assert session.turns[0].usage == expected


def test_the_compacted_messages_of_a_session_are_not_a_session(tmp_path: Path) -> None:
    messages = [message("user", 1_000, text("List the files"), id="m1")]
    whole = {"version": 1, "sessionId": "17_b", "origin": {"source": "cli"}, "messages": messages}
    compacted = {"version": 1, "source_message_count": 1, "messages": messages, "system_prompt": "Be."}
    (tmp_path / "17_b.messages.json").write_bytes(orjson.dumps(whole))
    (tmp_path / "17_b.compaction.json").write_bytes(orjson.dumps(compacted))
    assert len(session_in(tmp_path).turns) == 1


def test_chat_messages_with_times_are_not_a_task() -> None:
    chat = [{"role": "user", "content": "Hi", "ts": 1}, {"role": "assistant", "content": "Hello", "ts": 2}]
    [session], _ = read(LogFile(name="chat.json", data=orjson.dumps(chat)), "openai-chat")
    assert session.format == "openai"


def test_a_damaged_message_does_not_hide_the_others() -> None:
    task = {"role": "user", "content": "<task>List the files.</task>"}
    answer = {"role": "assistant", "content": "There are none."}
    [session], damages = read(document([task, None, answer]), "cline")
    assert [message.body["role"] for message in session.turns[0].messages] == ["user", "assistant"]
    assert [damage.line for damage in damages] == [2]
