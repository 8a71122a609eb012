"""Postgres, Valkey and the web server.

Postgres and Valkey start with the first test that uses the database, in a temporary folder. The workers of
pytest-xdist share a Postgres, in which each has a database. DATABASE_URL and CELERY_BROKER_URL replace them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from celery.signals import after_task_publish
from django.conf import settings
from django.db import connection, transaction
from django.test import TransactionTestCase
from pytest_django import DjangoDbBlocker

from contextapp.embedded import home as homes
from contextapp.embedded import postgres, valkey
from contextapp.embedded.supervisor import Supervisor
from tests import serving

#: Whether Postgres belongs to this run, so that its databases need not be removed.
_SHARED = "CONTEXTAPP_TEST_SHARED_POSTGRES"
_TEMPLATE = "template_of_tests"


class SharedPostgres:
    """Runs a Postgres for all workers of pytest-xdist."""

    def __init__(self) -> None:
        homes.prepare(settings.HOME)
        postgres.ensure_cluster(settings.HOME, fast=True)
        self.supervisor = Supervisor()
        self.supervisor.__enter__()
        self.supervisor.start(postgres.program(settings.HOME, fast=True))
        os.environ |= {"DATABASE_URL": homes.database_url(settings.HOME), _SHARED: "1"}

    def pytest_unconfigure(self) -> None:
        self.supervisor.__exit__(None, None, None)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    if config.getoption("dist", "no") != "no" and not os.environ.get("DATABASE_URL"):
        config.pluginmanager.register(SharedPostgres())


@pytest.fixture(scope="session")
def servers() -> Iterator[None]:
    """Run a Postgres that does not need to survive a crash, and a Valkey."""
    home = settings.HOME
    homes.prepare(home)
    programs = []
    if not os.environ.get("DATABASE_URL"):
        postgres.ensure_cluster(home, fast=True)
        programs.append(postgres.program(home, fast=True))
    if not os.environ.get("CELERY_BROKER_URL"):
        programs.append(valkey.program(home))
    with Supervisor() as supervisor:
        supervisor.start(*programs)
        yield


@pytest.fixture
def dispatched(servers: None) -> Iterator[list[tuple[str, str]]]:
    """Return the tasks that the broker has accepted, each with the id of its row.

    A thread can also dispatch the memory updates of earlier tests.
    """
    found: list[tuple[str, str]] = []

    def add(sender: str, body: Any, **_: Any) -> None:
        found.append((sender, str(body[0][0])))

    after_task_publish.connect(add, weak=False)
    yield found
    after_task_publish.disconnect(add)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(servers: None, django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Start the servers before pytest-django creates the test database."""
    # A request in a test without a database opens a pool, whose connections are not to the test database.
    connection.close_pool()


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_keepdb: bool) -> bool:
    """Keep the test database of an embedded server: the server's folder is deleted after the tests."""
    return django_db_keepdb or not os.environ.get("DATABASE_URL") or _SHARED in os.environ


@pytest.fixture(scope="session")
def _migrating(django_db_modify_db_settings: None) -> Iterator[psycopg.Connection | None]:
    """Copy the database that another worker has migrated.

    If there is none, return a connection: the others wait until it is closed.
    """
    if _SHARED not in os.environ:
        yield None
        return
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        server.execute("SELECT pg_advisory_lock(1)")
        if server.execute("SELECT FROM pg_database WHERE datname = %s", [_TEMPLATE]).rowcount:
            name = connection.creation._get_test_db_name()
            server.execute(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
            server.close()
        yield server


@pytest.fixture(scope="session")
def django_db_setup(
    _migrating: psycopg.Connection | None, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> None:
    """Let the other workers copy the database, and make transactional tests empty it quickly."""
    TransactionTestCase._fixture_teardown = lambda _: _empty()  # type: ignore[method-assign]
    if _migrating is not None and not _migrating.closed:
        with django_db_blocker.unblock():
            connection.close()
            connection.close_pool()
        _migrating.execute(f"CREATE DATABASE {_TEMPLATE} TEMPLATE {connection.settings_dict['NAME']}")
        _migrating.close()


def _empty() -> None:
    """Delete all rows but those of migrations. Django would truncate every table and recreate permissions."""
    names = set(connection.introspection.django_table_names(only_existing=True, include_views=False))
    tables = sorted(names - {"auth_permission", "django_content_type"})
    filled = " UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT FROM {table})" for table in tables)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"LOCK {', '.join(tables)} IN SHARE MODE")  # waits for the servers' transactions
        cursor.execute(filled)
        for (table,) in cursor.fetchall():
            cursor.execute(f"DELETE FROM {table}")


@pytest.fixture(scope="session")
def _web_server(django_db_setup: None) -> Iterator[str]:
    with serving.web_server() as url:
        yield url


@pytest.fixture
def served_url(_web_server: str, transactional_db: None) -> str:
    """Return the URL of the real web server, which uses the test database: `http://127.0.0.1:…`."""
    return _web_server
