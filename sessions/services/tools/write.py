"""Write the sums of a batch with one statement each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.db import connection

from sessions.models import AgentSession, ToolFile, ToolOutput, ToolRollup
from sessions.services.tools.sums import Sums

_ADDED = (
    "calls", "call_tokens", "outputs", "output_tokens", "errors", "repeats", "repeat_tokens", "cost_microusd",
)  # fmt: skip
_TYPES = {
    "project_id": "uuid",
    "session_id": "uuid",
    "day": "date",
    "tool": "text",
    "path": "text",
    "span": "text",
}


def _insert(table: str, columns: Sequence[str], then: str) -> str:
    values = ", ".join(f"%({name})s::{_TYPES.get(name, 'bigint')}[]" for name in columns)
    return f"INSERT INTO {table} AS r ({', '.join(columns)}) SELECT * FROM unnest({values}) {then}"  # noqa: S608


_ROLLUP_COLUMNS = ("project_id", "session_id", "day", "tool", *_ADDED, "largest_tokens", "largest_position")
_ADD_ROLLUPS = _insert(
    ToolRollup._meta.db_table,
    _ROLLUP_COLUMNS,
    f"""
    ON CONFLICT (session_id, day, tool) DO UPDATE SET
        {", ".join(f"{name} = r.{name} + excluded.{name}" for name in _ADDED)},
        largest_tokens = greatest(r.largest_tokens, excluded.largest_tokens),
        largest_position = CASE WHEN excluded.largest_tokens > r.largest_tokens
                                THEN excluded.largest_position ELSE r.largest_position END
    """,
)
_FILE_COLUMNS = ("session_id", "path", "span", "reads", "tokens", "last_position")
_ADD_FILES = _insert(
    ToolFile._meta.db_table,
    _FILE_COLUMNS,
    """
    ON CONFLICT (session_id, path, span) DO UPDATE SET
        reads = r.reads + excluded.reads, tokens = r.tokens + excluded.tokens,
        last_position = excluded.last_position
    """,
)


def sums_write(session: AgentSession, sums: Sums) -> None:
    """Add the sums of a batch to those of the session."""
    ids = {"project_id": session.project_id, "session_id": session.pk}
    _add(
        _ADD_ROLLUPS,
        _ROLLUP_COLUMNS,
        [{**ids, "day": day, "tool": tool, **asdict(each)} for (day, tool), each in sums.tools.items()],
    )
    _add(
        _ADD_FILES,
        _FILE_COLUMNS,
        [{**ids, "path": path, "span": span, **asdict(each)} for (path, span), each in sums.files.items()],
    )
    ToolOutput.objects.bulk_create(
        ToolOutput(
            session=session,
            position=use.position,
            part=use.part,
            turn=use.turn,
            tool=use.tool,
            tokens=use.tokens,
            is_error=use.is_error,
        )
        for use in sums.outputs
    )


def _add(statement: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(statement, {name: [row[name] for row in rows] for name in columns})
