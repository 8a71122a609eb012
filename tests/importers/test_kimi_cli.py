"""Kimi CLI sessions, as version 1.48 records them: with tools, a sub-agent and a compaction."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest

from accounts.models import Project
from compaction.messages import Usage
from importers.base import Damage, ImportedSession, LogFile
from importers.reading import log_sources
from importers.registry import recognize
from sessions.services.imports.store import session_import
from tests.importers.logs import jsonl, read
from tests.importers.pairing import bodies, misplaced

SESSION = Path(__file__).parent / "recorded" / "kimi" / "3e7b28e8"


def sessions_in(folder: Path) -> dict[str, ImportedSession]:
    """Return the sessions in a folder by id. All of its logs are those of Kimi CLI, without damage."""
    found = {}
    for source in log_sources([folder]):
        [session], damages = read(source.read(), "kimi-cli")
        assert damages == []
        found[session.external_id] = session
    return found


def test_a_session() -> None:
    session = sessions_in(SESSION)["3e7b28e8"]
    assert (session.title, session.context_window) == ("Please read both files [two]", 262_144)
    assert session.metadata == {"cwd": "/work"}
    assert session.system.startswith("You are Kimi Code CLI.")
    assert not list(misplaced(session))
    first, second = session.turns[:2]
    assert first.usage == Usage(
        uncached_tokens=6256, cache_read_tokens=6255, cache_write_tokens=0, output_tokens=23
    )
    assert (first.response_id, str(first.at)) == ("chatcmpl-3156", "2026-11-27 12:48:05.991157+00:00")
    [question, answer] = [message.body for message in first.messages]
    assert question == {
        "role": "user",
        "content": [{"type": "text", "text": "Please read both files [two]"}],
    }
    kinds = ["thinking", "text", "tool_use", "tool_use"]
    assert [block["type"] for block in answer["content"]] == kinds
    failed = second.messages[0].body["content"][1]
    assert (failed["tool_use_id"], failed["is_error"]) == (answer["content"][3]["id"], True)
    assert all(turn.usage for turn in session.turns)


def test_a_compaction() -> None:
    last = sessions_in(SESSION)["3e7b28e8"].turns[-1]
    assert last.client_compaction is not None
    assert last.client_compaction.tokens_before == 13_142
    # The messages that Kimi CLI kept are not repeated.
    assert [(message.body["role"], message.is_summary) for message in last.messages] == [
        ("user", True),
        ("user", False),
        ("assistant", False),
    ]


def test_a_subagent() -> None:
    child = sessions_in(SESSION)["3e7b28e8:agent-add158c1b"]
    assert (child.parent_external_id, child.title, len(child.turns)) == ("3e7b28e8", "look", 2)


def test_subagents_of_older_versions_are_files_in_the_folder_of_the_session(tmp_path: Path) -> None:
    folder = tmp_path / "3e7b28e8"
    folder.mkdir()
    for name in ("context.jsonl", "wire.jsonl"):
        shutil.copy(SESSION / name, folder)
    shutil.copy(SESSION / "subagents" / "add158c1b" / "context.jsonl", folder / "context_sub_1.jsonl")
    parent, child = sessions_in(tmp_path).values()
    assert (child.external_id, child.parent_external_id) == ("3e7b28e8:agent-sub_1", parent.external_id)
    assert len(child.turns) == 2


@pytest.mark.parametrize("name", ["context.jsonl", "context_1.jsonl", "context_sub_1.jsonl"])
def test_a_file_without_its_folder_is_named_after_its_content(name: str) -> None:
    ids = set()
    for words in ("First request", "Second request"):
        data = jsonl({"role": "_checkpoint", "id": 0}, {"role": "user", "content": words}).data
        [session], _ = read(LogFile(name=name, data=data), "kimi-cli")
        ids.add(session.external_id)
    assert len(ids) == 2


@pytest.mark.django_db
def test_a_session_that_grew_and_was_compacted(tmp_path: Path, project: Project) -> None:
    """The file that is renamed by the compaction contains the same messages as before."""
    before = tmp_path / "before" / "3e7b28e8"
    before.mkdir(parents=True)
    shutil.copy(SESSION / "context_1.jsonl", before / "context.jsonl")
    events, _, _ = (SESSION / "wire.jsonl").read_text().partition('"/compact"')
    (before / "wire.jsonl").write_text(events.rpartition("\n")[0])
    early, whole = sessions_in(before.parent)["3e7b28e8"], sessions_in(SESSION)["3e7b28e8"]
    assert bodies(whole)[: len(bodies(early))] == bodies(early)
    first = session_import(project=project, imported=early)
    again = session_import(project=project, imported=whole)
    assert (first.turns_added, again.turns_added) == (5, 1)
    assert again.messages_added == 3


def test_messages_without_events() -> None:
    """Older versions had one file per session, named after it."""
    lines = (SESSION / "context_1.jsonl").read_bytes().splitlines()[1:]
    log = LogFile(name="sessions/0123/abc.jsonl", data=b"\n".join(lines))
    [session], damages = read(log, "kimi-cli")
    assert (session.external_id, len(session.turns), damages) == ("abc", 5, [])
    assert session.turns[0].usage is None


def test_a_rewound_session_keeps_what_was_sent(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": f"Request {n}"} for n in range(3)]
    answer = {"role": "assistant", "content": "Done."}
    start = {"role": "_checkpoint", "id": 0}
    first = jsonl(start, messages[0], answer, messages[1], answer)
    second = jsonl(start, messages[0], answer, messages[2], answer)
    for name, log in (("context_1.jsonl", first), ("context.jsonl", second), ("wire.jsonl", jsonl())):
        (tmp_path / name).write_bytes(log.data)
    session = sessions_in(tmp_path)[tmp_path.name]
    texts = [body["content"][0]["text"] for body in bodies(session) if body["role"] == "user"]
    assert texts == ["Request 0", "Request 1", "Request 2"]
    assert all(turn.client_compaction is None for turn in session.turns)


def test_damaged_lines_are_reported_with_their_file(tmp_path: Path) -> None:
    shutil.copytree(SESSION, tmp_path / "s")
    path = tmp_path / "s" / "wire.jsonl"
    path.write_bytes(path.read_bytes()[:-20] + b"\n" + orjson.dumps({"message": 5}) + b"\n")
    source = next(iter(log_sources([tmp_path])))
    log = source.read()
    importer = recognize(log)
    assert importer is not None
    found = [item for item in importer.read(log) if isinstance(item, Damage)]
    assert [(Path(each.file).name, each.line) for each in found] == [("wire.jsonl", 45), ("wire.jsonl", 46)]
