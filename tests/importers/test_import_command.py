"""`import_sessions`, with the database: idempotent, grows with its log, says what was wrong."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Project
from sessions.models import AgentSession
from tests.importers.logs import SESSION, block, jsonl, result, text, tool_use, user

pytestmark = pytest.mark.django_db

OPENING = (user("Fix it", "u1"), block("m1", tool_use("c1"), "a1"))
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


def test_it_imports_once_and_then_what_has_grown(tmp_path: Path) -> None:
    path = write(tmp_path, *OPENING)
    assert total(run(path)) == [1, 1, 0, 0, 1, 2]
    assert total(run(path)) == [1, 0, 0, 1, 0, 0]
    write(tmp_path, *OPENING, *REST)
    assert total(run(path)) == [1, 0, 1, 0, 1, 2]
    session = AgentSession.objects.get(external_id=SESSION)
    assert (session.turn_count, session.message_count) == (2, 4)


def test_a_dry_run_stores_nothing(tmp_path: Path) -> None:
    assert total(run("--dry-run", write(tmp_path, *OPENING)))[1] == 1
    assert not AgentSession.objects.filter(external_id=SESSION).exists()


def test_it_names_damaged_lines_and_unknown_files(tmp_path: Path) -> None:
    write(tmp_path, *OPENING, tail=b'{"type": "us')
    (tmp_path / "other.json").write_text('{"no": "log"}')
    report = run(str(tmp_path))
    assert f"{SESSION}.jsonl:3: not JSON" in report
    assert "other.json" in report
    assert "Claude Code session log (JSONL)" in report


@pytest.mark.parametrize("path", ["missing", "other.json"])
def test_a_missing_path_and_no_log_at_all_are_errors(tmp_path: Path, path: str) -> None:
    (tmp_path / "other.json").write_text('{"no": "log"}')
    with pytest.raises(CommandError):
        run(str(tmp_path / path))


def total(report: str) -> list[int]:
    """Files, new, grown, unchanged, turns, messages."""
    (line,) = [line for line in report.splitlines() if line.startswith("total")]
    return [int(figure.replace(",", "")) for figure in line.split()[1:]]
