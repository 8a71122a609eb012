"""Data for the chart of one session: prompt sizes, their components and compactions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, LiteralString

from psycopg.rows import class_row
from psycopg.types.numeric import Int4

from compaction.sizes.meter import Slope
from sessions.charts.prompt_sizes import OwnCompaction, PromptSize
from sessions.charts.slope import slope_of
from sessions.models import AgentSession, Compaction
from sessions.selectors.summarizers import is_soft_trigger_used
from sessions.selectors.token_budgets import limit_of, policy_of, session_calibration
from sessions.store.counts import breakdown_unpack
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
    parameters: dict[str, Any] = {"session": session.pk, "first": bounds[0], "last": bounds[1]}
    selected: LiteralString = ""
    if turns is not None:
        selected, parameters["turns"] = _SELECTED, list(map(Int4, turns))
    return rows_fetch(_POINTS + selected + _ORDER, parameters, row_factory=class_row(PromptSize))


# A prepared query with binary results, because a chart reads thousands of rows.
_POINTS: LiteralString = """
SELECT index AS turn, prompt_estimate AS estimate, prompt_served AS served, prompt_reported AS reported,
       client_compaction, output_spike, at, model, preamble_version AS preamble, budget,
       coalesce(uncached_tokens, 0) AS uncached, coalesce(cache_read_tokens, 0) AS cache_read,
       coalesce(cache_write_tokens, 0) AS cache_write, coalesce(output_tokens, 0) AS output,
       cost_microusd AS microusd, billed
  FROM agent_sessions_turn
 WHERE session_id = %(session)s AND index BETWEEN %(first)s AND %(last)s
"""
_SELECTED: LiteralString = " AND index = ANY(%(turns)s)"
_ORDER: LiteralString = " ORDER BY index"


def compactions_by_turn(*, session: AgentSession) -> dict[int, int]:
    """Return the numbers of the applied compactions by contextapp, by the first turn with their prompt."""
    if not session.compaction_count:
        return {}
    rows = session.compactions.filter(state__in=Compaction.APPLIED).order_by("number")
    return {turn + 1: number for turn, number in rows.values_list("turn_index", "number")}


def prompt_slope(
    *, session: AgentSession, points: Sequence[PromptSize], compactions: Collection[int]
) -> Slope | None:
    """Return the trend of the newest prompts of a session, or None if there are too few.

    `compactions` are the turns of `compactions_by_turn`.
    """
    limit, policy = limit_of(session), policy_of(session.policy)
    soft = policy.soft if is_soft_trigger_used(session.policy, session.project) else 0
    share = min((each for each in (soft, policy.hard) if each), default=None)
    return slope_of(
        points,
        limit.tokens if limit else None,
        calibration=session_calibration(session),
        compactions=compactions,
        trigger=int(limit.tokens * share) if limit and limit.name == "budget" and share else None,
    )


def chart_components(*, session: AgentSession, turns: Sequence[int]) -> list[Mapping[str, int]]:
    """Return the tokens by component of the prompts served at these turns, in order."""
    rows = rows_fetch(_COMPONENTS, {"session": session.pk, "turns": list(map(Int4, turns))})
    return [breakdown_unpack(size).tokens for (size,) in rows]


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
