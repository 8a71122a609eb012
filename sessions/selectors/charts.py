"""Data for the chart of one session: prompt sizes, their components and compactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compaction.breakdown import TokenBreakdown
from compaction.meter import Slope
from sessions.charts.prompt_sizes import OwnCompaction, PromptSize
from sessions.charts.slope import slope_of
from sessions.models import AgentSession, Compaction
from sessions.selectors.token_budgets import calibration_of, limit_of, policy_of


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
    rows = session.turns.order_by("index")
    if last is not None:
        rows = rows.filter(index__gte=max(session.turn_count - last, 0))
    if first is not None:
        rows = rows.filter(index__gte=first)
    if end is not None:
        rows = rows.filter(index__lte=end)
    if turns is not None:
        rows = rows.filter(index__in=turns)
    columns = rows.values_list(
        "index",
        "prompt_estimate",
        "prompt_served",
        "prompt_reported",
        "client_compaction",
        "output_spike",
        "at",
        "model",
        "preamble_version",
        "uncached_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "output_tokens",
        "cost_microusd",
        "billed",
        named=True,
    )
    return [_point(row) for row in columns.iterator(chunk_size=5_000)]


def _point(row: Any) -> PromptSize:
    return PromptSize(
        turn=row.index,
        estimate=row.prompt_estimate,
        served=row.prompt_served,
        reported=row.prompt_reported,
        client_compaction=row.client_compaction,
        output_spike=row.output_spike,
        at=row.at,
        model=row.model,
        preamble=row.preamble_version,
        uncached=row.uncached_tokens or 0,
        cache_read=row.cache_read_tokens or 0,
        cache_write=row.cache_write_tokens or 0,
        output=row.output_tokens or 0,
        microusd=row.cost_microusd,
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
    rows = session.turns.filter(index__in=turns) if len(turns) < session.turn_count else session.turns.all()
    sizes = rows.order_by("index").values_list("component_tokens", flat=True)
    return [TokenBreakdown.from_counts(size).tokens for size in sizes]


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
