"""Write the sums of a batch in one statement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any, LiteralString

from sessions.models import ToolOutputs
from sessions.services.backlog import KEPT_SESSION, LEASE
from sessions.services.tools.sums import ClaimedScan, FileSums, Sums, ToolSums
from sessions.store.postgres import row_fetch
from sessions.store.prepared import Prepared

#: The columns of `ToolRollup` and of `ToolFile`.
_ROLLUP = tuple(each.name for each in fields(ToolSums))
_FILE = tuple(each.name for each in fields(FileSums))
#: The arrays of `ToolOutputs`, and the field of a `ToolUse` that each contains.
_OUTPUT = {
    "positions": "position",
    "turns": "turn",
    "tools": "tool",
    "tokens": "tokens",
    "errors": "is_error",
}
_ADDED = [name for name in _ROLLUP if not name.startswith("largest_")]

#: Moves the state of a session that is still claimed, and adds to its sums.
_STATEMENT: LiteralString = f"""
WITH {KEPT_SESSION}, own AS (
    UPDATE agent_sessions_toolscan
       SET position = %(position)s, context = %(context)s, charged_turn = %(charged_turn)s,
           lease_until = CASE WHEN %(is_last)s THEN NULL
                              ELSE statement_timestamp() + make_interval(secs => %(lease)s) END
      FROM kept
     WHERE session_id = kept.id AND attempts = %(attempts)s
    RETURNING session_id
), rollups AS (
    INSERT INTO agent_sessions_toolrollup AS r (project_id, session_id, day, tool, {", ".join(_ROLLUP)})
    SELECT %(project)s::uuid, own.session_id, new.*
      FROM own, unnest(%(rollup_days)s::text[]::date[], %(rollup_tools)s::text[],
                       {", ".join(f"%(rollup_{name})s::bigint[]" for name in _ROLLUP)}) AS new
        ON CONFLICT (session_id, day, tool) DO UPDATE SET
           {", ".join(f"{name} = r.{name} + excluded.{name}" for name in _ADDED)},
           largest_tokens = greatest(r.largest_tokens, excluded.largest_tokens),
           largest_position = CASE WHEN excluded.largest_tokens > r.largest_tokens
                                   THEN excluded.largest_position ELSE r.largest_position END
), files AS (
    INSERT INTO agent_sessions_toolfile AS f (session_id, path, span, {", ".join(_FILE)})
    SELECT own.session_id, new.*
      FROM own, unnest(%(file_paths)s::text[], %(file_spans)s::text[],
                       {", ".join(f"%(file_{name})s::bigint[]" for name in _FILE)}) AS new
        ON CONFLICT (session_id, path, span) DO UPDATE SET
           reads = f.reads + excluded.reads, tokens = f.tokens + excluded.tokens,
           last_position = excluded.last_position
), outputs AS (
    INSERT INTO agent_sessions_tooloutputs AS o (session_id, number, {", ".join(_OUTPUT)})
    SELECT own.session_id, new.position / {ToolOutputs.MESSAGES},
           {", ".join(f"array_agg(new.{name} ORDER BY new.place)" for name in _OUTPUT.values())}
      FROM own, unnest(%(output_positions)s::int[], %(output_turns)s::int[], %(output_tools)s::text[],
                       %(output_tokens)s::int[], %(output_errors)s::bool[])
           WITH ORDINALITY AS new ({", ".join(_OUTPUT.values())}, place)
     GROUP BY 1, 2
        ON CONFLICT (session_id, number) DO UPDATE SET
           {", ".join(f"{name} = o.{name} || excluded.{name}" for name in _OUTPUT)}
)
SELECT session_id FROM own
"""  # noqa: S608  names of columns are inserted
_STORE = Prepared(
    "tool_sums_write",
    _STATEMENT,
    {
        **dict.fromkeys(("session", "project"), "uuid"),
        **dict.fromkeys(("position", "charged_turn", "attempts"), "int4"),
        "context": "jsonb",
        "is_last": "bool",
        "lease": "float8",
        **dict.fromkeys(
            ("rollup_days", "rollup_tools", "file_paths", "file_spans", "output_tools"), "text[]"
        ),
        **{f"rollup_{name}": "int8[]" for name in _ROLLUP},
        **{f"file_{name}": "int8[]" for name in _FILE},
        **dict.fromkeys(("output_positions", "output_turns", "output_tokens"), "int4[]"),
        "output_errors": "bool[]",
    },
)


def sums_write(scan: ClaimedScan, sums: Sums, *, position: int, is_last: bool) -> bool:
    """Add the sums of a batch to those of the session, and release it after the last.

    `position` is that of the next message. Return False if the claim was lost; nothing is stored then.
    """
    parameters = {
        "session": scan.session_id,
        "project": scan.project_id,
        "attempts": scan.attempts,
        "position": position,
        "context": sums.context,
        "charged_turn": sums.charged_turn,
        "is_last": is_last,
        "lease": LEASE.total_seconds(),
        "rollup_days": [day.isoformat() for day, _ in sums.tools],
        "rollup_tools": [tool for _, tool in sums.tools],
        **_columns("rollup", {name: name for name in _ROLLUP}, sums.tools.values()),
        "file_paths": [path for path, _ in sums.files],
        "file_spans": [span for _, span in sums.files],
        **_columns("file", {name: name for name in _FILE}, sums.files.values()),
        **_columns("output", _OUTPUT, sums.outputs),
    }
    return row_fetch(_STORE, parameters) is not None


def _columns(prefix: str, names: Mapping[str, str], rows: Iterable[Any]) -> dict[str, list[Any]]:
    """Return a parameter for each column. `names` maps columns to fields of the rows."""
    found = list(rows)
    return {f"{prefix}_{name}": list(map(attrgetter(field), found)) for name, field in names.items()}
