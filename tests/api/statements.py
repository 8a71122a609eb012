"""What a call asks of the database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest


def statements(ask: Callable[[], Any]) -> list[str]:
    """What Postgres is asked, by Django's cursors and by psycopg's own, which the hot calls use."""
    found: list[str] = []
    execute = psycopg.Cursor.execute

    def noted(cursor: Any, query: Any, *args: Any, **options: Any) -> Any:
        found.append(str(query).strip())
        return execute(cursor, query, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", noted)
        ask()
    return found
