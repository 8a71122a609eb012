"""The database as it was behind an earlier migration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

APP = "agent_sessions"


def migrate(to: str) -> Any:
    """The models as they are behind that migration."""
    executor = MigrationExecutor(connection)
    executor.migrate([(APP, to)])
    return executor.loader.project_state([(APP, to)]).apps


@contextmanager
def migrated(to: str) -> Iterator[Any]:
    """The same, and back to the newest at the end."""
    [newest] = [name for app, name in MigrationExecutor(connection).loader.graph.leaf_nodes() if app == APP]
    try:
        yield migrate(to)
    finally:
        migrate(newest)
