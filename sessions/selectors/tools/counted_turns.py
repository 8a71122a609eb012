"""Read the turns whose tools are counted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import LiteralString, NamedTuple
from uuid import UUID

from psycopg.types.numeric import Int4

from sessions.store.counts import breakdown_unpack
from sessions.store.postgres import rows_fetch

_TURNS: LiteralString = """
SELECT index, at, model, first_position, client_compaction IS NOT NULL, billed, cost_microusd,
       component_tokens, prompt_reported, uncached_tokens, cache_read_tokens, cache_write_tokens,
       output_tokens, calibration_factor
  FROM agent_sessions_turn WHERE session_id = %(session)s AND index BETWEEN %(first)s AND %(last)s
"""


class CountedTurn(NamedTuple):
    """The columns of a turn that determine what its tools cost."""

    number: int
    at: datetime
    model: str
    first_position: int
    is_compacted: bool
    is_billed: bool
    cost_microusd: int | None
    component_tokens: bytes
    prompt_reported: int | None
    uncached_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    output_tokens: int | None
    calibration_factor: float | None

    @property
    def components(self) -> Mapping[str, int]:
        """Tokens of the served prompt by component, without empty components."""
        return breakdown_unpack(self.component_tokens).tokens


def counted_turns(session_id: UUID, *, first: int, last: int) -> dict[int, CountedTurn]:
    """Return the turns of a session from `first` to `last` by index."""
    rows = rows_fetch(_TURNS, {"session": session_id, "first": Int4(first), "last": Int4(last)})
    return {row[0]: CountedTurn._make(row) for row in rows}
