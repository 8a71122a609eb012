"""`import_sessions` with the database: idempotent, imports growing logs, reports problems."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from accounts.models import Project
from importers.reading import UnreadableLogError, log_sources
from sessions.models import AgentSession, ImportedLog
from sessions.services.imports import logs
from sessions.services.imports.store import ImportResult, prepared_import
from tests.importers.logs import SESSION, block, jsonl, result, text, tool_use, user
from tests.redaction.secrets import TOKENS

pytestmark = pytest.mark.django_db

OPENING = (user("Fix it", "u1"), block("m1", tool_use("c1"), "a1"))
CHILD = tuple(
    line | {"isSidechain": True, "agentId": "k1"}
    for line in (user("Look", "s1"), block("n1", text("Found"), "s2"))
)
REST = (result("c1", "ok", "r1"), block("m2", text("Done"), "a2"))


@pytest.fixture(autouse=True)
def default_project() -> Project:
    return Project.objects.get_or_create(slug="default", defaults={"name": "Default"})[0]


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("import_sessions", *arguments, verbosity=0, stdout=out)
    return out.getvalue()


def write(folder: Path, *lines: object, tail: bytes = b"") -> str:
    path = folder / f"{SESSION}.jsonl"
    path.write_bytes(jsonl(*lines).data + tail)
    return str(path)


def test_a_log_is_imported_once_and_then_its_new_part(tmp_path: Path) -> None:
    path = write(tmp_path, *OPENING)
    assert total(run(path)) == [1, 1, 0, 0, 1, 2]
    assert total(run(path)) == [1, 0, 0, 1, 0, 0]
    write(tmp_path, *OPENING, *REST)
    assert total(run(path)) == [1, 0, 1, 0, 1, 2]
    session = AgentSession.objects.get(external_id=SESSION)
    assert (session.turn_count, session.message_count) == (2, 4)


def test_a_sub_agent_is_linked_to_a_parent_that_is_read_after_it(tmp_path: Path) -> None:
    parent = {"id": "ses_b", "projectID": "p"}
    for session in ({"id": "ses_a", "projectID": "p", "parentID": "ses_b"}, parent):
        info = {"id": "msg_1", "role": "user", "sessionID": session["id"]}
        part = {"id": "prt_1", "messageID": "msg_1", "type": "text", "text": "Fix the parser"}
        export = {"info": session, "messages": [{"info": info, "parts": [part]}]}
        (tmp_path / f"{session['id']}.json").write_bytes(orjson.dumps(export))
    assert total(run(str(tmp_path)))[1] == 2
    child = AgentSession.objects.get(external_id="ses_a")
    assert child.parent is not None
    assert child.parent.external_id == "ses_b"


def test_a_log_without_times_is_dated_by_its_file(tmp_path: Path) -> None:
    log = tmp_path / "chat.json"
    log.write_text('[{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]')
    os.utime(log, (1_700_000_000, 1_700_000_000))
    run(str(log))
    session = AgentSession.objects.get(external_id="chat")
    assert session.started_at == session.last_active_at == datetime.fromtimestamp(1_700_000_000, UTC)


def test_it_ends_with_a_link_to_the_sessions(tmp_path: Path, settings: Any) -> None:
    path = write(tmp_path, *OPENING)
    assert "Sessions: http://127.0.0.1:8000/p/default/sessions/" in run(path)
    settings.CONTEXTAPP_PUBLIC_URL = "https://ctx.example.org"
    assert "Sessions: https://ctx.example.org/p/default/sessions/" in run(path)


def test_a_dry_run_stores_nothing(tmp_path: Path) -> None:
    printed = run("--dry-run", write(tmp_path, *OPENING))
    assert total(printed)[1] == 1
    assert "Sessions:" not in printed
    assert not AgentSession.objects.filter(external_id=SESSION).exists()


def test_damaged_lines_conflicts_and_unknown_files_are_reported(tmp_path: Path) -> None:
    write(tmp_path, *OPENING, tail=b'{"type": "us')
    (tmp_path / "other").mkdir()
    other = write(tmp_path / "other", user("Another task", "u9"), block("m9", text("Done."), "a9"))
    (tmp_path / "other.json").write_text('{"no": "log"}')
    (tmp_path / "agent-a7.meta.json").write_text('{"agentType": "Explore"}')  # as Claude Code writes it
    report = run(str(tmp_path))
    assert f"{SESSION}.jsonl:3: not JSON" in report
    assert f"{other}: session {SESSION} has calls that are not in the log" in report
    assert "other.json" in report
    assert "agent-a7" not in report


def test_an_unreadable_folder_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, *OPENING)
    (tmp_path / "locked").mkdir()
    list_folder = Path.iterdir

    def listed(folder: Path) -> Iterator[Path]:
        if folder.name == "locked":
            raise PermissionError(13, "Permission denied", str(folder))
        return list_folder(folder)

    monkeypatch.setattr(Path, "iterdir", listed)
    report = run(str(tmp_path))
    assert f"{tmp_path}/locked: Permission denied" in report
    assert total(report)[:2] == [1, 1]


def test_a_log_that_its_agent_deletes_meanwhile_is_reported(tmp_path: Path) -> None:
    path = Path(write(tmp_path, *OPENING))
    [source] = log_sources([tmp_path])
    path.unlink()
    assert source.size == 0
    with pytest.raises(UnreadableLogError, match="No such file"):
        source.read()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing", "No such file or folder: "),
        ("other.json", "No log is in a supported format."),
        ("empty", "Found no logs in "),
    ],
)
def test_a_missing_path_and_no_log_at_all_are_errors(tmp_path: Path, path: str, message: str) -> None:
    (tmp_path / "other.json").write_text('{"no": "log"}')
    (tmp_path / "empty").mkdir()
    with pytest.raises(CommandError, match=message):
        run(str(tmp_path / path))


def test_the_error_about_a_folder_without_logs_explains_how_to_import_a_file_with_another_name(
    tmp_path: Path,
) -> None:
    history = tmp_path / "chat-history.md"
    history.write_text("# aider chat started at 2025-01-02 03:04:05\n\n#### Rename the flag  \n\nDone.\n")
    with pytest.raises(CommandError, match=r"\.aider\.chat\.history\.md\. Specify other files by their path"):
        run(str(tmp_path))
    assert total(run(str(history)))[:2] == [1, 1]


def test_an_unchanged_log_takes_one_statement(
    tmp_path: Path, django_assert_num_queries: Callable[[int], AbstractContextManager[None]]
) -> None:
    path = write(tmp_path, *OPENING, *CHILD)
    run(path)
    with django_assert_num_queries(2):  # the project, and the known logs
        assert total(run(path)) == [1, 0, 0, 2, 0, 0]


def test_a_log_is_identified_by_its_content_and_not_its_path(tmp_path: Path) -> None:
    run(write(tmp_path, *OPENING))
    (tmp_path / "moved").mkdir()
    packed = tmp_path / "moved" / f"{SESSION}.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / f"{SESSION}.jsonl").read_bytes()))
    assert total(run(str(packed))) == [1, 0, 0, 1, 0, 0]
    assert ImportedLog.objects.count() == 1


@pytest.mark.slow
def test_a_deleted_session_can_be_imported_again(tmp_path: Path) -> None:
    path = write(tmp_path, *OPENING, *CHILD)
    run(path)
    AgentSession.objects.get(external_id=f"{SESSION}:agent-k1").delete()
    assert total(run(path)) == [1, 1, 0, 1, 1, 2]


def test_a_session_that_is_deleted_during_its_import_does_not_fail_the_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, *OPENING)

    def imported(**options: Any) -> ImportResult:
        result = prepared_import(**options)
        AgentSession.objects.all().delete()  # a user deletes it
        return result

    with monkeypatch.context() as patched:
        patched.setattr(logs, "prepared_import", imported)
        run(path)
        connection.check_constraints()
    assert total(run(path))[1] == 1


def test_a_damaged_log_is_read_and_reported_again(tmp_path: Path) -> None:
    path = write(tmp_path, *OPENING, tail=b'{"type": "us')
    assert run(path).count(":3: not JSON") == run(path).count(":3: not JSON") == 1
    assert not ImportedLog.objects.exists()


def test_a_session_that_grew_forgets_its_earlier_states(tmp_path: Path) -> None:
    run(write(tmp_path, *OPENING))
    run(write(tmp_path, *OPENING, *REST))
    assert ImportedLog.objects.count() == 1


def test_it_reports_how_many_secrets_were_redacted(tmp_path: Path) -> None:
    kind, secret = TOKENS[0]
    path = write(tmp_path, *OPENING, result("c1", f"key = {secret}", "r1"))
    assert f"Secrets redacted: {kind} 1" in run(path)
    assert "Secrets" not in run(path)


@pytest.mark.processes
def test_several_processes_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        lines = [line | {"sessionId": name} for line in (*OPENING, *REST)]
        (tmp_path / f"{name}.jsonl").write_bytes(jsonl(*lines).data)
    (tmp_path / "d.json.gz").write_bytes(b"no gzip")
    monkeypatch.setattr("sessions.services.imports.reader._BYTES_PER_PROCESS", 1)
    report = run(str(tmp_path), "--jobs", "2")
    assert total(report) == [3, 3, 0, 0, 6, 12]
    assert "d.json.gz" in report
    assert total(run(str(tmp_path), "--jobs", "1")) == [3, 0, 0, 3, 0, 0]


def total(report: str) -> list[int]:
    """Files, new, grown, unchanged, turns, messages."""
    (line,) = [line for line in report.splitlines() if line.startswith("total")]
    return [int(figure.replace(",", "")) for figure in line.split()[1:]]
