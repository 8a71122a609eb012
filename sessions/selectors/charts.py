"""Reads for the chart of one session: the prompt size of every turn, what it was made of, its compactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compaction.breakdown import TokenBreakdown
from sessions.charts.prompt_sizes import OwnCompaction, PromptSize
from sessions.models import AgentSession, Compaction


def chart_points(
    *, session: AgentSession, last: int | None = None, first: int | None = None, end: int | None = None
) -> list[PromptSize]:
    """The prompt size of each turn in order, of the `last` turns, or of those from `first` up to `end`.
    One query over small columns."""
    turns = session.turns.order_by("index")
    if last is not None:
        turns = turns.filter(index__gte=max(session.turn_count - last, 0))
    if first is not None:
        turns = turns.filter(index__gte=first)
    if end is not None:
        turns = turns.filter(index__lte=end)
    columns = turns.values_list(
        "index", "prompt_estimate", "prompt_served", "prompt_reported", "client_compaction", "at"
    )
    return [
        PromptSize(
            turn=index, estimate=estimate, served=served, reported=reported, client_compaction=client, at=at
        )
        for index, estimate, served, reported, client, at in columns.iterator(chunk_size=5_000)
    ]


def chart_components(*, session: AgentSession, turns: Sequence[int]) -> list[Mapping[str, int]]:
    """What the prompts of these turns were made of as they were served, in tokens by component, in order."""
    rows = session.turns.filter(index__in=turns) if len(turns) < session.turn_count else session.turns.all()
    sizes = rows.order_by("index").values_list("component_tokens", flat=True)
    return [TokenBreakdown.from_counts(size).tokens for size in sizes]


def own_compactions(*, session: AgentSession) -> list[Compaction]:
    """The compactions of ours that changed what was served, in order."""
    return list(session.compactions.filter(state__in=Compaction.APPLIED).order_by("number"))


def compaction_markers(rows: Sequence[Compaction]) -> list[OwnCompaction]:
    """What the chart shows of compactions; the last may lie behind every turn."""
    return [
        OwnCompaction(
            # The prompt behind a turn is what the call of the next one reads.
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
