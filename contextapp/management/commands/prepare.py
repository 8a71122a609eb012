"""`manage.py prepare`: prepare the database before the servers start."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from kombu.exceptions import OperationalError as BrokerError

from accounts.services.bootstrap import bootstrap
from contextapp.celery import app
from contextapp.embedded.home import write_private

CONNECT_SECONDS = 5

_COLUMNS = (
    "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
)


class Command(BaseCommand):
    help = "Check the database and the broker, migrate, and write the keys on the first start."
    requires_system_checks = ()

    def handle(self, **options: Any) -> None:
        check_database()
        check_broker()
        check_tables()
        call_command("migrate", interactive=False, verbosity=0)
        write_keys()
        # Counters start at zero. The files of earlier processes would accumulate.
        for file in Path(settings.CONTEXTAPP_METRICS_FOLDER).glob("*.db"):
            file.unlink(missing_ok=True)


def check_database() -> None:
    """Connect without the pool, whose errors do not include the cause."""
    place = settings.DATABASES["default"]
    parameters = connection.get_connection_params()
    parameters.pop("pool", None)
    try:
        with psycopg.connect(**{**parameters, "connect_timeout": CONNECT_SECONDS}) as server:
            encoding = server.info.parameter_status("server_encoding")
    except psycopg.OperationalError as error:
        where = place["HOST"] or "this machine"
        raise CommandError(
            f"The database {place['NAME']} on {where} cannot be reached: {one_line(error)}. "
            "Check DATABASE_URL."
        ) from error
    if encoding != "UTF8":
        raise CommandError(
            f"The database {place['NAME']} has the encoding {encoding}, which cannot store every text. "
            "Create it with `createdb --encoding=UTF8 --template=template0`."
        )


def check_broker() -> None:
    try:
        with app.connection_for_write(
            connect_timeout=CONNECT_SECONDS, transport_options={"socket_connect_timeout": CONNECT_SECONDS}
        ) as broker:
            broker.ensure_connection(max_retries=1, interval_start=0.1, timeout=CONNECT_SECONDS)
    except (BrokerError, OSError) as error:
        where = urlsplit(settings.CELERY_BROKER_URL).hostname or "this machine"
        raise CommandError(
            f"The broker on {where} cannot be reached: {one_line(error)}. Check CELERY_BROKER_URL."
        ) from error


def check_tables() -> None:
    """Raise an error if the tables differ from those that the applied migrations create.

    This runs before the migrations, which would change the database so that the other version fails, too.
    """
    name = settings.DATABASES["default"]["NAME"]
    loader = MigrationLoader(connection, ignore_no_migrations=True)
    if not loader.applied_migrations:
        return
    if unknown := loader.applied_migrations.keys() - loader.disk_migrations.keys():
        raise CommandError(
            f"The database {name} was used by another version, whose migrations this version does not have "
            f"({'.'.join(min(unknown))}). Start that version, or a newer one. Databases created before "
            "November 24, 2026 cannot be migrated: delete the data folder or the database, start again and "
            "import your logs."
        )
    with connection.cursor() as cursor:
        cursor.execute(_COLUMNS)
        existing = set(cursor.fetchall())
    state = loader.project_state(list(loader.applied_migrations))
    expected = {
        (model._meta.db_table, str(field.column))
        for model in state.apps.get_models(include_auto_created=True)
        for field in model._meta.local_concrete_fields
    }
    tables = {table for table, _ in expected}
    other = expected ^ {column for column in existing if column[0] in tables}
    if other:
        table, column = min(other)
        raise CommandError(
            f"The tables of the database {name} are those of an earlier version, which cannot be migrated "
            f"({table}.{column}). Delete the data folder or the database, start again and import your logs."
        )


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")


@transaction.atomic
def write_keys() -> None:
    """Create the default project, its API key and the admin, and write their secrets to files.

    The files are written before the commit. After a crash in between, the next start overwrites them; in the
    other order, the secrets would be lost.
    """
    created = bootstrap()
    settings.HOME.mkdir(parents=True, exist_ok=True, mode=0o700)
    if created.api_key is not None:
        write_private(settings.HOME / "api-key", created.api_key)
    if created.admin_password is not None:
        write_private(settings.HOME / "admin-password", created.admin_password)
