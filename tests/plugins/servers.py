"""Postgres, Valkey and the web server.

Postgres and Valkey start with the first test that uses the database, in a temporary folder, one pair per
pytest-xdist worker. DATABASE_URL and CELERY_BROKER_URL replace them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from django.conf import settings

from contextapp.embedded import home as homes
from contextapp.embedded import postgres, valkey
from contextapp.embedded.supervisor import Supervisor
from tests import serving


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


@pytest.fixture(scope="session")
def django_db_modify_db_settings(servers: None, django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Start the servers before pytest-django creates the test database."""


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_keepdb: bool) -> bool:
    """Keep the test database of an embedded server: the server's folder is deleted after the tests."""
    return django_db_keepdb or not os.environ.get("DATABASE_URL")


@pytest.fixture(scope="session")
def _web_server(django_db_setup: None) -> Iterator[str]:
    with serving.web_server() as url:
        yield url


@pytest.fixture
def served_url(_web_server: str, transactional_db: None) -> str:
    """Return the URL of the real web server, which uses the test database: `http://127.0.0.1:…`."""
    return _web_server
