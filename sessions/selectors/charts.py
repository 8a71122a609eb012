"""Data for the chart of one session: prompt sizes, their components and compactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, LiteralString, NamedTuple

from psycopg.types.numeric import Int4

from compaction.breakdown import TokenBreakdown
from compaction.meter import Slope
from sessions.charts.prompt_sizes import OwnCompaction, PromptSize
from sessions.charts.slope import slope_of
from sessions.models import AgentSession, Compaction
from sessions.selectors.token_budgets import calibration_of, limit_of, policy_of
from sessions.store.counts import counts_unpack
from sessions.store.postgres import rows_fetch


def chart_points(
    *,
    session: AgentSession,
    last: int | None = None,
    first: int | None = None,
    end: int | None = None,
    turns: Sequence[int] | None = None,
) -> list[PromptSize]:
    """Return the prompt size of each turn in order.

    Of the `last` turns, of turns `first` to `end`, or of `turns`. One query over small columns.
    """
    bounds = (first or 0, session.turn_count if end is None else end)
    if last is not None:
        bounds = (max(session.turn_count - last, 0), session.turn_count)
    parameters = {"session": session.pk, "first": bounds[0], "last": bounds[1]}
    if turns is None:
        rows = rows_fetch(_POINTS + _ORDER, parameters)
    else:
        parameters["turns"] = list(map(Int4, turns))
        rows = rows_fetch(_POINTS + _SELECTED + _ORDER, parameters)
    return [_point(_Row(*row)) for row in rows]


# A prepared query with binary results, because a chart reads thousands of rows.
_POINTS: LiteralString = """
SELECT index, prompt_estimate, prompt_served, prompt_reported, client_compaction, output_spike, at, model,
       preamble_version, uncached_tokens, cache_read_tokens, cache_write_tokens, output_tokens, cost_microusd,
       billed
  FROM agent_sessions_turn
 WHERE session_id = %(session)s AND index BETWEEN %(first)s AND %(last)s
"""
_SELECTED: LiteralString = " AND index = ANY(%(turns)s)"
_ORDER: LiteralString = " ORDER BY index"


class _Row(NamedTuple):
    """The columns of `_POINTS`."""

    turn: int
    estimate: int
    served: int | None
    reported: int | None
    client_compaction: Mapping[str, Any] | None
    output_spike: int | None
    at: datetime
    model: str
    preamble: int
    uncached: int | None
    cache_read: int | None
    cache_write: int | None
    output: int | None
    microusd: int | None
    billed: bool


def _point(row: _Row) -> PromptSize:
    return PromptSize(
        turn=row.turn,
        estimate=row.estimate,
        served=row.served,
        reported=row.reported,
        client_compaction=row.client_compaction,
        output_spike=row.output_spike,
        at=row.at,
        model=row.model,
        preamble=row.preamble,
        uncached=row.uncached or 0,
        cache_read=row.cache_read or 0,
        cache_write=row.cache_write or 0,
        output=row.output or 0,
        microusd=row.microusd,
        billed=row.billed,
    )


def compactions_by_turn(*, session: AgentSession) -> dict[int, int]:
    """Return the numbers of the applied compactions by contextapp, by the first turn with their prompt."""
    if not session.compaction_count:
        return {}
    rows = session.compactions.filter(state__in=Compaction.APPLIED).order_by("number")
    return {turn + 1: number for turn, number in rows.values_list("turn_index", "number")}


def prompt_slope(*, session: AgentSession, points: Sequence[PromptSize]) -> Slope | None:
    """Return the trend of the newest prompts of a session, or None if there are too few."""
    limit, policy = limit_of(session), policy_of(session.policy)
    return slope_of(
        points,
        limit.tokens if limit else None,
        calibration=calibration_of(session.calibration, model=session.model),
        is_compacted=limit is not None and limit.name == "budget" and bool(policy.hard or policy.soft),
    )


def chart_components(*, session: AgentSession, turns: Sequence[int]) -> list[Mapping[str, int]]:
    """Return the tokens by component of the prompts served at these turns, in order."""
    rows = rows_fetch(_COMPONENTS, {"session": session.pk, "turns": list(map(Int4, turns))})
    return [TokenBreakdown.from_counts(counts_unpack(size)).tokens for (size,) in rows]


_COMPONENTS: LiteralString = """
SELECT component_tokens FROM agent_sessions_turn
 WHERE session_id = %(session)s AND index = ANY(%(turns)s)
 ORDER BY index
"""


def own_compactions(*, session: AgentSession) -> list[Compaction]:
    """Return the compactions made by contextapp that changed the prompt, in order."""
    return list(session.compactions.filter(state__in=Compaction.APPLIED).order_by("number"))


def compaction_markers(rows: Sequence[Compaction]) -> list[OwnCompaction]:
    """Return the chart's markers of compactions. The last may come after the last turn."""
    return [
        OwnCompaction(
            # The prompt after a turn is the one that the next turn's call reads.
            turn=row.turn_index + 1,
            trigger=row.trigger,
            tokens_before=row.tokens_before,
            tokens_after=row.tokens_after,
            is_reverted=row.state == Compaction.State.REVERTED,
            number=row.number,
            steps=row.record.get("strategies", ()),
            dropped=row.record.get("dropped", 0),
            collapsed=row.record.get("collapsed", 0),
            break_even_turns=row.record.get("break_even_turns"),
        )
        for row in rows
    ]
