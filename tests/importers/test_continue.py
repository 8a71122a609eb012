"""Sessions of Continue. Its CLI recorded the first one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from accounts.models import Project
from compaction.messages import Usage
from importers.base import ImportedSession, LogFile
from importers.reading import log_sources
from sessions.services.imports.store import session_import
from tests.importers.logs import document, read
from tests.importers.pairing import bodies, misplaced

JSON = dict[str, Any]

DATA = (Path(__file__).parent / "recorded" / "continue.json").read_bytes()
SESSION: JSON = {"sessionId": "s-1", "title": "New Session", "workspaceDirectory": "file:///work/app"}


def session_of(log: LogFile) -> ImportedSession:
    [session], damages = read(log, "continue")
    assert damages == []
    assert not list(misplaced(session))
    return session


def extension(*history: JSON, **fields: Any) -> ImportedSession:
    return session_of(document({**SESSION, "history": list(history), **fields}))


def item(role: str, content: Any, **fields: Any) -> JSON:
    message = {key: fields.pop(key) for key in ("usage", "toolCalls", "signature") if key in fields}
    return {"message": {"role": role, "content": content, **message}, "contextItems": [], **fields}


def test_a_session_of_the_cli(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / "sessions.json").write_bytes(b"[]")
    (folder / "run.json").write_bytes(DATA)
    [source] = log_sources([folder])
    session = session_of(source.read())
    assert (session.title, session.metadata) == ("Tell me what the README says", {"cwd": "/work/app"})
    assert [turn.model for turn in session.turns] == ["qwen3-coder"] * 3 + [""]
    assert session.turns[0].usage == Usage(
        uncached_tokens=708, cache_read_tokens=300, cache_write_tokens=0, output_tokens=20
    )
    _, first, results, *_ = bodies(session)
    assert [block["type"] for block in first["content"]] == ["text", "tool_use", "tool_use"]
    assert first["content"][1]["input"] == {"filepath": "README.md"}
    assert [block["content"] for block in results["content"]] == [
        "Content of README.md:\nhello world\n",
        "Files in /work/app:\nREADME.md (file, 12 bytes)",
    ]


def test_context_images_and_thinking_of_the_extensions() -> None:
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "imageUrl", "imageUrl": {"url": "data:image/png;base64,aGk="}},
    ]
    usage = {
        "promptTokens": 50,
        "completionTokens": 7,
        "promptTokensDetails": {"cachedTokens": 30, "cacheWriteTokens": 20},
    }
    session = extension(
        item("user", parts, contextItems=[{"name": "a.py", "content": "x = 1"}]),
        item("thinking", "Look.", signature="c2ln"),
        item("assistant", "A number.", usage=usage),
        item("assistant", ""),
        chatModelTitle="Claude Sonnet",
    )
    request, answer = bodies(session)
    assert [block.get("text") for block in request["content"]] == ["x = 1\n", "What is it?", None]
    assert answer["content"][0] == {"type": "thinking", "thinking": "Look.", "signature": "c2ln"}
    assert (session.title, session.model) == ("What is it?", "Claude Sonnet")
    assert session.turns[0].usage == Usage(
        uncached_tokens=50, cache_read_tokens=30, cache_write_tokens=20, output_tokens=7
    )


@pytest.mark.parametrize(
    ("state", "content", "is_error"),
    [
        ({"status": "canceled"}, "The user cancelled this tool call.", False),
        ({"status": "errored", "output": [{"content": "No"}, {"content": "file"}]}, "No\n\nfile", True),
        ({"status": "generated"}, "No tool output", False),
    ],
)
def test_results_are_read_as_they_were_sent(state: JSON, content: str, is_error: bool) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    answer = item("assistant", "", toolCalls=[call], toolCallStates=[{"toolCallId": "c1", **state}])
    session = extension(item("user", "Read it"), answer, item("tool", "shown only"))
    [result] = bodies(session)[2]["content"]
    assert (result["content"], result.get("is_error", False)) == (content, is_error)


@pytest.mark.parametrize(
    "summarized",
    [
        [item("assistant", "Hello", conversationSummary="They greet.")],
        [item("assistant", "Hello"), item("assistant", "They greet.", conversationSummary="They greet.")],
    ],
)
def test_summaries_are_compactions(summarized: list[JSON]) -> None:
    session = extension(item("user", "Hi"), *summarized, item("user", "Go on"))
    assert [turn.client_compaction is not None for turn in session.turns] == [False, True]
    summary, request = session.turns[1].messages
    assert (summary.body["content"][0]["text"], summary.is_summary) == ("They greet.", True)
    assert request.body["content"][0]["text"] == "Go on"


def test_a_damaged_item_does_not_hide_the_others() -> None:
    session = orjson.loads(DATA)
    session["history"][1] = {"message": 5}
    [imported], [damage] = read(document(session), "continue")
    assert (len(imported.turns), damage.line) == (3, 2)


@pytest.mark.django_db
def test_a_compaction_by_the_cli_continues_an_earlier_import(project: Project) -> None:
    """`/compact` replaces the history in the file by a summary."""
    before = [each for n in range(3) for each in (item("user", f"Request {n}"), item("assistant", "Done."))]
    summary = item("assistant", "Three requests.", conversationSummary="Three requests.")
    after = [summary, item("user", "Request 3"), item("assistant", "Done.")]
    more = [*after, item("user", "Request 4"), item("assistant", "Done.")]
    added = []
    for history in (before, after, after, more):
        result = session_import(project=project, imported=extension(*history))
        added.append((result.turns_added, result.messages_added))
    assert added == [(3, 6), (1, 3), (0, 0), (1, 2)]
    result.session.refresh_from_db()
    assert result.session.context_start == 6
    turn = result.session.turns.get(index=3)
    assert turn.client_compaction is not None
