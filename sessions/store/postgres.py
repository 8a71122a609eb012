"""The connection as the hot calls use it: server-side parameters, prepared statements, pipelines.

Django's cursors merge parameters into the text on the client's side, so the server parses every body as
SQL and plans each statement anew. For the two calls that agents make all the time that is most of the cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

import psycopg
from django.db import connection
from psycopg import sql
from psycopg.rows import TupleRow


def raw_connection() -> psycopg.Connection[TupleRow]:
    """Django's own connection of this thread, without Django's cursor."""
    connection.ensure_connection()
    raw: psycopg.Connection[TupleRow] = connection.connection
    return raw


def execute(
    raw: psycopg.Connection[TupleRow],
    statement: LiteralString,
    parameters: Any = None,
    *,
    binary: bool = True,
) -> psycopg.Cursor[TupleRow]:
    """Runs a statement, prepared; answers come in binary, so that bodies are not told in hexadecimal."""
    return psycopg.Cursor(raw).execute(statement, parameters, prepare=True, binary=binary)


def rows_copy(table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts rows of the same columns by COPY. Of many rows it takes a fraction of what Django's statement
    takes, which has every value written into its text."""
    if not rows:
        return
    columns = sql.SQL(", ").join(map(sql.Identifier, rows[0]))
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), columns)
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(tuple(row.values()))
