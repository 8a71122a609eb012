"""Record served prompts, so that past prompts equal the prompts that the model saw."""

from __future__ import annotations

from typing import LiteralString
from uuid import UUID

from django.db import connection
from django.db.models import Exists, IntegerField
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast
from psycopg.types.numeric import Int4

from sessions.models import AgentSession, Compaction, ServedPrompt
from sessions.selectors.prompt_state import PromptState
from sessions.store.postgres import execute, raw_connection

#: Ends the statements that record a prompt.
REPLACE_SERVED: LiteralString = """
    ON CONFLICT (session_id) DO UPDATE
   SET turn = excluded.turn, edits_revision = excluded.edits_revision
"""

# Does not wait for the disk: a crash may lose the record of a prompt, but a fetch remains fast.
_RECORD: LiteralString = f"""
INSERT INTO agent_sessions_servedprompt (session_id, turn, edits_revision)
SELECT %s, %s, %s FROM set_config('synchronous_commit', 'off', true)
{REPLACE_SERVED}
"""  # noqa: S608  a constant is inserted

#: Returns the turn that was served before, if the record has changed.
_RECORD_CHANGED: LiteralString = f"""
WITH before AS (
    SELECT turn, edits_revision FROM agent_sessions_servedprompt WHERE session_id = %(session)s
)
INSERT INTO agent_sessions_servedprompt (session_id, turn, edits_revision)
SELECT %(session)s, %(turn)s, %(revision)s FROM set_config('synchronous_commit', 'off', true)
 WHERE NOT EXISTS (SELECT FROM before WHERE turn = %(turn)s AND edits_revision = %(revision)s)
{REPLACE_SERVED}
RETURNING (SELECT turn FROM before)
"""  # noqa: S608  a constant is inserted


def prompt_record(state: PromptState) -> None:
    """Record that the current prompt was served. Does nothing if it was recorded already."""
    turn = state.turn_count - 1
    if turn < 0 or (turn, state.edits_revision) == (state.served_turn, state.served_revision):
        return
    if state.has_changed_since_served:
        _show_at_once(state.id, turn)
    _record(state.id, turn, state.edits_revision)


def session_prompt_record(session: AgentSession) -> None:
    """Record that the current prompt of a session was served. Does nothing if it was recorded already."""
    turn = session.turn_count - 1
    if turn < 0:
        return
    parameters = {"session": session.pk, "turn": Int4(turn), "revision": Int4(session.edits_revision)}
    with connection.wrap_database_errors:
        row = execute(raw_connection(), _RECORD_CHANGED, parameters).fetchone()
    if row is not None and row[0] == turn:
        _show_at_once(session.pk, turn)


def _record(session_id: UUID, turn: int, revision: int) -> None:
    with connection.wrap_database_errors:
        execute(raw_connection(), _RECORD, [session_id, Int4(turn), Int4(revision)])


def _show_at_once(session_id: UUID, turn: int) -> None:
    """Show the compactions and reverts since the last fetch in the prompt of this turn."""
    rows = Compaction.objects.filter(session_id=session_id)
    rows.filter(turn_index=turn, first_turn=turn + 1).update(first_turn=turn)
    rows.filter(reverted_turn=turn + 1).update(reverted_turn=turn)


def next_prompt_turn(session: AgentSession) -> Combinable:
    """Return the turn whose prompt is the next to be served: the last one, if it was not served yet.

    It is an expression, for the statement that stores it.
    """
    last = max(session.turn_count - 1, 0)
    is_served = Exists(ServedPrompt.objects.filter(session_id=session.pk, turn=last))
    return Cast(is_served, IntegerField()) + last
