"""The most expensive calls of a session, and what explains their cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sessions.models import AgentSession, Compaction, Turn

#: Number of calls shown.
SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpensiveCall:
    """A model call with its cost and tokens.

    `uncached` tokens were not in the cache or were written to it. `pause` is the time since the previous
    turn. `compaction` is the number of the contextapp compaction in between, if any; `client_compacted`:
    the recording client compacted there.
    """

    turn: int
    microusd: int
    uncached: int
    cached: int
    output: int
    pause: timedelta | None
    compaction: int | None
    client_compacted: bool

    @property
    def is_cold(self) -> bool:
        """Whether less than half of the prompt came from the provider's cache."""
        return self.uncached > self.cached


def estimated_outputs(*, session: AgentSession) -> int:
    """Return the number of calls whose output tokens are estimated, because the log reports too few."""
    if session.origin == "api":
        return 0
    return session.turns.filter(output_reported__isnull=False).count()


def expensive_calls(*, session: AgentSession) -> list[ExpensiveCall]:
    """Return calls with a known price, most expensive first. Three queries over small columns."""
    if not session.cost_microusd:
        return []
    turns = session.turns.filter(billed=True, cost_microusd__gt=0).only(*_COLUMNS)
    rows = list(turns.order_by("-cost_microusd", "index")[:SHOWN])
    before = [row.index - 1 for row in rows]
    times = dict(session.turns.filter(index__in=before).values_list("index", "at"))
    compacted = _compactions(session, before)
    return [_call(row, times.get(row.index - 1), compacted.get(row.index - 1)) for row in rows]


_COLUMNS = (
    "index", "at", "cost_microusd", "uncached_tokens", "cache_read_tokens", "cache_write_tokens",
    "output_tokens", "client_compaction",
)  # fmt: skip


def _call(row: Turn, before: datetime | None, compaction: int | None) -> ExpensiveCall:
    return ExpensiveCall(
        turn=row.index,
        microusd=row.cost_microusd or 0,
        uncached=(row.uncached_tokens or 0) + (row.cache_write_tokens or 0),
        cached=row.cache_read_tokens or 0,
        output=row.output_tokens or 0,
        pause=row.at - before if before is not None else None,
        compaction=compaction,
        client_compacted=row.client_compaction is not None,
    )


def _compactions(session: AgentSession, turns: Sequence[int]) -> dict[int, int]:
    """Return the number of the last contextapp compaction after each turn."""
    if not session.compaction_count or not turns:
        return {}
    rows = session.compactions.filter(turn_index__in=turns, state__in=Compaction.APPLIED)
    return dict(rows.order_by("number").values_list("turn_index", "number"))
