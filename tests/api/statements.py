"""Record the SQL statements of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest


def statements(ask: Callable[[], Any]) -> list[str]:
    """Record the statements of Django's cursors and of psycopg's, which the hot paths use."""
    found: list[str] = []
    execute = psycopg.Cursor.execute

    def noted(cursor: Any, query: Any, *args: Any, **options: Any) -> Any:
        found.append((query.decode() if isinstance(query, bytes) else str(query)).strip())
        return execute(cursor, query, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", noted)
        ask()
    return found
