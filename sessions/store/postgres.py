"""Postgres for the hot paths: server-side parameters, prepared statements, COPY.

Django's cursors merge parameters into the statement on the client, so the server parses every message body
as SQL and plans each statement again. On the hot paths that would take most of the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, LiteralString, TypeVar

import psycopg
from django.db import IntegrityError, connection
from psycopg import sql
from psycopg.errors import ForeignKeyViolation
from psycopg.rows import RowFactory, TupleRow, tuple_row

from compaction.deadline import check_deadline
from sessions.store.prepared import Prepared

Row = TypeVar("Row")


def _raw_connection() -> psycopg.Connection[TupleRow]:
    """Return the psycopg connection of this thread's Django connection."""
    connection.ensure_connection()
    raw: psycopg.Connection[TupleRow] = connection.connection
    return raw


def execute(
    statement: LiteralString, parameters: Any = None, *, row_factory: RowFactory[Any] = tuple_row
) -> psycopg.Cursor[Any]:
    """Execute a prepared statement. Results are binary, so that bodies are not sent as hex.

    Raises Django's database errors, like all functions below.
    """
    check_deadline()
    with connection.wrap_database_errors:
        cursor = psycopg.Cursor(_raw_connection(), row_factory=row_factory)
        return cursor.execute(statement, parameters, prepare=True, binary=True)


def row_fetch(statement: Prepared, parameters: Mapping[str, Any]) -> Any:
    """Execute a statement and return its first row, or None.

    Unlike `execute`, this does not search the statement for parameters, which takes a millisecond if it is
    long.
    """
    check_deadline()
    with connection.wrap_database_errors:
        cursor = psycopg.RawCursor(_raw_connection())
        cursor.execute(statement.sql, statement.wrap(parameters), prepare=True, binary=True)
        return cursor.fetchone()


def rows_fetch(
    statement: LiteralString, parameters: Any, *, row_factory: RowFactory[Any] = tuple_row
) -> list[Any]:
    """Return the rows of a prepared query."""
    with connection.wrap_database_errors:  # reading a value may fail, too
        return execute(statement, parameters, row_factory=row_factory).fetchall()


def rows_fetch_by_index(statement: LiteralString, parameters: Any) -> list[Any]:
    """Return the rows of a prepared query that uses indexes wherever it can.

    Postgres scans a small table as a whole, even if it has long columns, which are stored separately. Reading
    and comparing them takes hundreds of times as long as the planner expects.
    """
    raw = _raw_connection()
    with connection.wrap_database_errors, raw.transaction():
        raw.execute("SET LOCAL enable_seqscan = off")
        return execute(statement, parameters).fetchall()


def rows_copy(table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows, all with the same columns, by COPY.

    For many rows this takes a fraction of the time of `bulk_create`, which formats every value into the
    statement. Raises Django's database errors: imports that fail with one are continued later.
    """
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        return
    columns = sql.SQL(", ").join(map(sql.Identifier, first))
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), columns)
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(statement) as copy:
        for row in chain([first], rows):
            copy.write_row(tuple(row.values()))


def array_literal(numbers: Iterable[int]) -> str:
    """Return an array as a parameter: psycopg takes many times as long to convert each element of a list."""
    return f"{{{','.join(map(str, numbers))}}}"


def is_reference_lost(error: Exception) -> bool:
    """Return whether a row cannot be stored because a row that it refers to has been deleted."""
    return isinstance(error.__cause__, ForeignKeyViolation)


def constraint_name(error: IntegrityError) -> str | None:
    """Return the name of the database constraint that was violated."""
    cause = error.__cause__
    return cause.diag.constraint_name if isinstance(cause, psycopg.Error) else None
