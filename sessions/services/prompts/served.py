"""Record served prompts, so that past prompts equal the prompts that the model saw."""

from __future__ import annotations

from typing import LiteralString
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, IntegerField
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast
from psycopg.types.numeric import Int4

from compaction.triggers import requested
from sessions.models import AgentSession, Compaction, ServedPrompt
from sessions.selectors.prompts.state import PromptState
from sessions.store.postgres import execute

#: The client and the provider apply their compactions to the prompt of the turn that reports them.
_OF_OTHERS = (requested.CLIENT.name, requested.PROVIDER.name)


def replace_served(known: LiteralString) -> LiteralString:
    """Return SQL that replaces the record of a prompt, unless a later one was served in the meantime.

    `known` is the recorded turn when the state was read. It is later than the current turn if turns have been
    removed since.
    """
    return f"""
    ON CONFLICT (session_id) DO UPDATE
   SET turn = excluded.turn, edits_revision = excluded.edits_revision
 WHERE agent_sessions_servedprompt.turn <= greatest(excluded.turn, {known})
"""  # noqa: S608  a constant is inserted


# Records nothing if an edit or the client has changed the prompt since it was read, or if a later one was
# served. A compaction or revert in progress holds a lock, so this waits until its effect is known. It does
# not wait for the disk: a crash may lose the record of a prompt, but a fetch remains fast.
_RECORD: LiteralString = f"""
INSERT INTO agent_sessions_servedprompt (session_id, turn, edits_revision)
SELECT s.id, %(turn)s, s.edits_revision
  FROM (SELECT id, edits_revision FROM agent_sessions_agentsession
         WHERE id = %(session)s AND edits_revision = %(revision)s AND omitted_count = %(omitted)s
           FOR KEY SHARE) s,
       set_config('synchronous_commit', 'off', true)
{replace_served("%(served)s")}
"""  # noqa: S608  constants are inserted


def prompt_record(state: PromptState) -> bool:
    """Record that the current prompt is served, unless it was recorded already.

    Returns False and records nothing if the prompt has changed since the state was read, or if that of a
    later turn was served.
    """
    return _record(state, (state.served_turn, state.served_revision))


def session_prompt_record(session: AgentSession) -> bool:
    """Record that the current prompt of a session is served, like `prompt_record`."""
    rows = AgentSession.objects.filter(pk=session.pk, turn_count=session.turn_count)
    served = rows.values_list("served_prompt__turn", "served_prompt__edits_revision").first()
    return _record(session, served or (None, None))


def _record(state: PromptState | AgentSession, served: tuple[int | None, int | None]) -> bool:
    turn = state.turn_count - 1
    if turn < 0 or (turn, state.edits_revision) == served:
        return True
    if turn != served[0]:
        return _insert(state, served[0])
    with transaction.atomic():
        is_current = _insert(state, turn)
        if is_current:
            _show_at_once(state.id, turn)
    return is_current


def _insert(state: PromptState | AgentSession, served: int | None) -> bool:
    parameters = {
        "session": state.id,
        "turn": Int4(state.turn_count - 1),
        "revision": Int4(state.edits_revision),
        "omitted": Int4(state.omitted_count),
        "served": Int4(served) if served is not None else None,
    }
    return execute(_RECORD, parameters).rowcount == 1


def _show_at_once(session_id: UUID, turn: int) -> None:
    """Show the compactions and reverts since the last fetch in the prompt of this turn."""
    rows = Compaction.objects.filter(session_id=session_id)
    rows.filter(turn_index=turn, first_turn=turn + 1).update(first_turn=turn)
    rows.filter(reverted_turn=turn + 1).update(reverted_turn=turn)


def served_prompt_correct(session: AgentSession, *, turn: int, compaction: int) -> None:
    """Show the compactions up to number `compaction` in the prompt of the call of `turn`, and no later ones.

    If calls are recorded late, a session may be compacted after the prompt of a call was served, but before
    the turns that precede that call are stored. Locks the session before its compactions, as a fetch does.
    """
    AgentSession.objects.select_for_update().get(pk=session.pk)
    rows = Compaction.objects.filter(session=session).exclude(trigger__in=_OF_OTHERS)
    rows.filter(number__lte=compaction, first_turn__gte=turn).update(first_turn=turn - 1)
    rows.filter(number__gt=compaction, first_turn__lt=turn).update(first_turn=turn)


def next_prompt_turn(session: AgentSession) -> Combinable:
    """Return the turn whose prompt is the next to be served: the last one, if it was not served yet.

    It is an expression, for the statement that stores it.
    """
    last = max(session.turn_count - 1, 0)
    is_served = Exists(ServedPrompt.objects.filter(session_id=session.pk, turn=last))
    return Cast(is_served, IntegerField()) + last
