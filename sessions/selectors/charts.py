"""Reads for charts: the prompt size of every turn of one session, and where it was compacted here."""

from __future__ import annotations

from sessions.charts.prompt_sizes import OwnCompaction, PromptSize
from sessions.models import AgentSession, Compaction


def chart_points(*, session: AgentSession, last: int | None = None) -> list[PromptSize]:
    """The prompt size of each turn, or of the `last` turns, in order. One query over small columns."""
    turns = session.turns.order_by("index")
    if last is not None:
        turns = turns.filter(index__gte=max(session.turn_count - last, 0))
    columns = turns.values_list(
        "index", "prompt_estimate", "prompt_served", "prompt_reported", "client_compaction"
    )
    return [
        PromptSize(turn=index, estimate=estimate, served=served, reported=reported, client_compaction=client)
        for index, estimate, served, reported, client in columns.iterator(chunk_size=5_000)
    ]


def own_compactions(*, session: AgentSession) -> list[OwnCompaction]:
    """The compactions of ours that changed what was served, in order; the last may lie behind every turn."""
    states = [Compaction.State.DONE, Compaction.State.REVERTED]
    rows = session.compactions.filter(state__in=states).order_by("number")
    columns = rows.values_list("turn_index", "trigger", "tokens_before", "tokens_after", "state")
    return [
        OwnCompaction(
            # The prompt behind a turn is what the call of the next one reads.
            turn=index + 1,
            trigger=trigger,
            tokens_before=before,
            tokens_after=after,
            is_reverted=state == Compaction.State.REVERTED,
        )
        for index, trigger, before, after, state in columns
    ]
