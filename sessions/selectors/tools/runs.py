"""Runs of tools that telemetry reports."""

from __future__ import annotations

from sessions.models import AgentSession, ToolRun, Turn

#: Maximum number of runs of one turn.
_MOST = 20


def tool_runs_of_turn(*, session: AgentSession, turn: Turn) -> list[ToolRun]:
    """Return the runs between the answer of a turn and the next turn, in order of time."""
    following = (
        Turn.objects.filter(session=session, index=turn.index + 1).values_list("at", flat=True).first()
    )
    runs = ToolRun.objects.filter(session=session, at__gte=turn.at)
    if following is not None:
        runs = runs.filter(at__lt=following)
    return list(runs.order_by("at")[:_MOST])
