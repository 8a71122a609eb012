"""A new importer is one file (`diary_importer.py`) and one line (an entry in `IMPORTERS`)."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Project
from importers.base import LogFile
from importers.registry import IMPORTERS, recognize
from sessions.models import AgentSession
from tests.api.client import Api, code
from tests.extending.diary_importer import DiaryImporter
from tests.layout import ROOT

DIARY = b"# diary monday\nuser: Does it rain?\nmodel: It does.\nuser: Still?\nmodel: No.\nblot\n"

GUIDE = ROOT / "docs" / "guides" / "import-logs.md"


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(IMPORTERS, DiaryImporter.name, DiaryImporter())


def test_it_is_recognized() -> None:
    importer = recognize(LogFile(name="monday.txt", data=DIARY))
    assert importer is IMPORTERS["diary"]


@pytest.mark.parametrize("query", ["", "?format=diary"])
def test_it_is_imported_over_rest(api: Api, query: str) -> None:
    response = api.post(f"imports/{query}", DIARY)
    assert response.status_code == 200, response.content
    imported = response.json()
    assert imported["format"] == "diary"
    assert imported["damages"] == [{"line": 6, "reason": "not a diary entry"}]
    [session] = imported["sessions"]
    assert (session["external_id"], session["turns"], session["messages"]) == ("monday", 2, 4)
    assert api.get("sessions/monday/").json()["origin"] == "diary"


@pytest.mark.django_db
def test_it_is_imported_by_the_command(tmp_path: Path) -> None:
    Project.objects.get_or_create(slug="default", defaults={"name": "Default"})
    path = tmp_path / "monday.txt"
    path.write_bytes(DIARY)
    for arguments in ([], ["--format", "diary"]):
        out = StringIO()
        call_command("import_sessions", str(path), *arguments, verbosity=0, stdout=out)
        assert re.search(r"^diary +1 ", out.getvalue(), re.MULTILINE)
    assert AgentSession.objects.get(external_id="monday").turn_count == 2


@pytest.mark.django_db
def test_it_is_listed_if_no_format_is_recognized(api: Api, tmp_path: Path) -> None:
    response = api.post("imports/", b"no log")
    assert code(response) == "unknown_format"
    assert "diary" in response.json()["error"]["message"]
    Project.objects.get_or_create(slug="default", defaults={"name": "Default"})
    path, out = tmp_path / "other.txt", StringIO()
    path.write_bytes(b"no log")
    with pytest.raises(CommandError):
        call_command("import_sessions", str(path), verbosity=0, stdout=out)
    assert "Diary (text)" in out.getvalue()


def test_the_guide_lists_every_format() -> None:
    table = GUIDE.read_text().split("## Formats", 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    documented = [name for row in rows for name in re.findall(r"`([\w-]+)`", row)]
    assert sorted(documented) == sorted(IMPORTERS.keys() - {"diary"})
