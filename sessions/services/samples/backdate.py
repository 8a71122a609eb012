"""Date a sample session back, so that lists and trends of the last two weeks have content."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, LiteralString

from django.db import connection

from sessions.models import AgentSession

#: The statements that date the rows of a session back, by turn.
_STATEMENTS: Sequence[LiteralString] = (
    """
    UPDATE agent_sessions_turn r SET at = t.at
      FROM unnest(%(turns)s::int[], %(times)s::timestamptz[]) AS t(turn, at)
     WHERE r.session_id = %(session)s AND r.index = t.turn
    """,
    """
    UPDATE agent_sessions_memoryrevision r SET created_at = t.at
      FROM unnest(%(turns)s::int[], %(times)s::timestamptz[]) AS t(turn, at)
     WHERE r.session_id = %(session)s AND r.turn_index = t.turn
    """,
    # Without `awaits_upgrade`, no model is paid for a better recap of a fictional session.
    """
    UPDATE agent_sessions_compaction r
       SET created_at = t.at, started_at = t.at, finished_at = t.at, awaits_upgrade = false
      FROM unnest(%(turns)s::int[], %(times)s::timestamptz[]) AS t(turn, at)
     WHERE r.session_id = %(session)s AND r.turn_index = t.turn
    """,
    """
    UPDATE agent_sessions_recap r SET created_at = t.at
      FROM unnest(%(turns)s::int[], %(times)s::timestamptz[]) AS t(turn, at), agent_sessions_compaction c
     WHERE c.session_id = %(session)s AND c.turn_index = t.turn AND r.compaction_id = c.id
    """,
)


def session_backdate(*, session: AgentSession, times: Sequence[datetime]) -> None:
    """Set the time of each turn and of what belongs to it. `times` has one entry for each turn."""
    turns = list(range(len(times)))
    parameters: dict[str, Any] = {"turns": turns, "times": list(times), "session": session.pk}
    with connection.cursor() as cursor:
        for statement in _STATEMENTS:
            cursor.execute(statement, parameters)
    AgentSession.objects.filter(pk=session.pk).update(
        created_at=times[0], started_at=times[0], last_active_at=times[-1]
    )
