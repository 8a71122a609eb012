"""Rules about the layout of the code that the linters do not check."""

from __future__ import annotations

import tomllib

import pytest

from tests.layout import ROOT, database_writes, package_cycles, sources

CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
PACKAGES: list[str] = CONFIG["root_packages"]
DJANGO_APPS = ("accounts", "replay", "sessions")

#: Expressions that look like database writes but are not, by file.
NOT_DATABASE = {
    "sessions/selectors/lists/filters.py": {"Q.create"},
    "sessions/store/blobs.py": {"storages['blobs'].save", "storages['blobs'].delete"},
    # Inserts the rows that services pass to it.
    "sessions/store/postgres.py": {"COPY {} ({}) FROM STDIN"},
}


@pytest.mark.slow
def test_only_services_write() -> None:
    files = [file for file in sources(DJANGO_APPS) if "services" not in file.parts]
    found = {
        f"{file}:{line}: {text}"
        for file in files
        for line, text in database_writes((ROOT / file).read_text())
        if text not in NOT_DATABASE.get(str(file), set())
    }
    assert sorted(found) == []


@pytest.mark.parametrize(
    "source",
    [
        "Turn.objects.create(index=1)",
        "session.save(update_fields=['title'])",
        "session.turns.filter(index=1).delete()",
        "rows = Turn.objects.filter(index=1)\nrows.update(billed=False)",
        "Turn.objects.filter(index=1)[:5].update(billed=False)",
        "Turn.objects.bulk_create(rows)",
        "SQL = 'WITH gone AS (DELETE FROM agent_sessions_turn) SELECT 1'",
        "SQL = 'UPDATE agent_sessions_turn t SET index = 1'",
        "cursor.execute('INSERT INTO agent_sessions_turn DEFAULT VALUES')",
    ],
)
def test_writes_are_recognized(source: str) -> None:
    assert len(list(database_writes(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "counts.update(files=1)",
        "self.counts['a'].update({'b': 1})",
        "'''INSERT INTO is described here.'''",
        "SQL = 'SELECT id FROM agent_sessions_turn FOR UPDATE SKIP LOCKED'",
        "row = Turn.objects.get(index=1)",
    ],
)
def test_reads_are_not_taken_for_writes(source: str) -> None:
    assert list(database_writes(source)) == []


def test_no_file_has_more_than_300_lines() -> None:
    lengths = {str(file): len((ROOT / file).read_text().splitlines()) for file in sources(PACKAGES)}
    assert {file: length for file, length in lengths.items() if length > 300} == {}


def test_the_top_of_sessions_is_small() -> None:
    entries = [entry for entry in (ROOT / "sessions").iterdir() if entry.name != "__pycache__"]
    assert len(entries) <= 12, sorted(entry.name for entry in entries)


def test_every_package_is_in_an_import_contract() -> None:
    top, *_ = (contract for contract in CONFIG["contracts"] if contract["type"] == "layers")
    assert sorted(_names(top["layers"])) == sorted(PACKAGES) == sorted(_top_level_packages())
    exhaustive = {
        container
        for contract in CONFIG["contracts"]
        if contract.get("exhaustive")
        for container in contract["containers"]
    }
    assert exhaustive == set(DJANGO_APPS)


def test_no_packages_import_each_other() -> None:
    assert package_cycles(PACKAGES) == []


def _names(layers: list[str]) -> set[str]:
    return {name.strip(" ()") for layer in layers for name in layer.split("|")}


def _top_level_packages() -> list[str]:
    folders = (file.parent for file in ROOT.glob("*/__init__.py"))
    return [folder.name for folder in folders if folder.name not in {"bench", "tests"}]
