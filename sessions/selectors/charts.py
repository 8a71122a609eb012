"""Reads for charts: the prompt size of every turn of one session."""

from __future__ import annotations

from sessions.charts.prompt_sizes import PromptSize
from sessions.models import AgentSession


def chart_points(*, session: AgentSession, last: int | None = None) -> list[PromptSize]:
    """The prompt size of each turn, or of the `last` turns, in order. One query over small columns."""
    turns = session.turns.order_by("index")
    if last is not None:
        turns = turns.filter(index__gte=max(session.turn_count - last, 0))
    columns = turns.values_list("index", "prompt_estimate", "prompt_reported", "client_compaction")
    return [
        PromptSize(turn=index, estimate=estimate, reported=reported, client_compaction=compaction)
        for index, estimate, reported, compaction in columns.iterator(chunk_size=5_000)
    ]
