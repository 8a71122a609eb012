"""Write the sums of a batch with one statement each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from operator import attrgetter
from typing import Any

from django.db import connection

from compaction.tool_usage import ToolUse
from sessions.models import AgentSession, ToolFile, ToolOutputs, ToolRollup
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
#: The arrays of `ToolOutputs`, and the field of a `ToolUse` that each contains.
_OUTPUT_ARRAYS = {
    "positions": "position",
    "turns": "turn",
    "tools": "tool",
    "tokens": "tokens",
    "errors": "is_error",
}
_APPEND_OUTPUTS = f"""
INSERT INTO {ToolOutputs._meta.db_table} AS o (session_id, number, {", ".join(_OUTPUT_ARRAYS)})
VALUES (%(session_id)s, %(number)s, {", ".join(f"%({name})s" for name in _OUTPUT_ARRAYS)})
    ON CONFLICT (session_id, number) DO UPDATE SET
       {", ".join(f"{name} = o.{name} || excluded.{name}" for name in _OUTPUT_ARRAYS)}
"""  # noqa: S608


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
    with connection.cursor() as cursor:
        for block in output_blocks(sums.outputs):
            cursor.execute(_APPEND_OUTPUTS, {"session_id": session.pk, **block})


def output_blocks(outputs: Iterable[ToolUse]) -> Iterator[dict[str, Any]]:
    """Yield the columns of `ToolOutputs` for outputs of a session in order, without its id."""
    for number, block in groupby(outputs, key=lambda use: use.position // ToolOutputs.MESSAGES):
        values = zip(*map(attrgetter(*_OUTPUT_ARRAYS.values()), block), strict=True)
        yield {"number": number, **dict(zip(_OUTPUT_ARRAYS, map(list, values), strict=True))}


def _add(statement: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(statement, {name: [row[name] for row in rows] for name in columns})
