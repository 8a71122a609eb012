"""`manage.py prepare` recognizes a database that it cannot use, before it changes anything."""

from __future__ import annotations

import psycopg
import pytest
from django.core.management import CommandError
from django.db import connection
from django.db.migrations import AddField
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from contextapp.management.commands.prepare import check_database, check_tables

pytestmark = pytest.mark.django_db


@pytest.fixture(params=["migrated", "before the migrations"])
def database(request: pytest.FixtureRequest) -> None:
    """The database of this version, and one to which its last migration has not been applied yet."""
    if request.param == "before the migrations":
        execute("ALTER TABLE agent_sessions_rollupcursor DROP COLUMN version")
        MigrationRecorder(connection).record_unapplied("agent_sessions", "0005_rollup_version")
    check_tables()


def execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("change", ["DROP COLUMN calibration_factor", "ADD COLUMN earlier int"])
def test_the_tables_of_an_earlier_version_are_reported(change: str) -> None:
    execute(f"ALTER TABLE agent_sessions_turn {change}")
    with pytest.raises(CommandError, match="are those of an earlier version"):
        check_tables()


def test_a_migration_of_another_version_is_reported() -> None:
    """The message does not call a newer database old, because users would delete it."""
    MigrationRecorder(connection).record_applied("agent_sessions", "0999_later")
    with pytest.raises(CommandError, match=r"agent_sessions\.0999_later\)\. Start that version"):
        check_tables()


@pytest.mark.slow
def test_the_encoding_of_the_database_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, requests with a title or a name that it cannot store would fail."""
    parameters = connection.get_connection_params() | {"autocommit": True}
    parameters.pop("pool", None)
    check_database()
    with psycopg.connect(**parameters) as server:
        server.execute("CREATE DATABASE latin1 TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
        try:
            with monkeypatch.context() as patch:
                patch.setitem(connection.settings_dict, "NAME", "latin1")
                with pytest.raises(CommandError, match="the encoding LATIN1"):
                    check_database()
        finally:
            server.execute("DROP DATABASE latin1")


def test_the_previous_version_can_write_to_migrated_tables() -> None:
    """During an upgrade, its containers keep running. They leave out the columns that they do not know."""
    added = [
        operation.field
        for migration in MigrationLoader(connection).disk_migrations.values()
        if migration.app_label in {"accounts", "agent_sessions", "replay"} and not migration.initial
        for operation in migration.operations
        if isinstance(operation, AddField)
    ]
    assert all(field.null or field.has_db_default() for field in added)
    assert added
