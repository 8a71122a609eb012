"""Remove thinking that the provider would reject, because the prompt before it has changed (rule A11).

A compaction removes the thinking after its edits itself. Two changes need another compaction: a revert, and a
change of the prompt while the model is answering, whose thinking is bound to the old prompt.
"""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q

from compaction.capabilities import capabilities_of
from compaction.edits import Edit as EditValue
from compaction.strategies import clear_thinking
from compaction.strategies.clear_thinking import edits_from, first_change
from compaction.triggers import requested
from sessions.models import AgentSession, Compaction, Turn
from sessions.models.transcript import REPORTED
from sessions.selectors.convert import edit_values
from sessions.services.compactions.given_edits import edits_apply
from sessions.services.compactions.planning import Loaded, plan_request, view_load

TRIGGER = requested.THINKING


def prompt_changes_after(session_id: UUID, turn: int, *, source: str) -> bool:
    """Return whether the prompt changed after the prompt of a turn was served, and before its answer.

    `source` is that of the turn.
    """
    changed = Q(first_turn=turn) | Q(reverted_turn=turn)
    rows = Compaction.objects.filter(changed, session_id=session_id, state__in=Compaction.APPLIED)
    return rows.exclude(trigger__in=_by_others(source)).exists()


def edits_after_revert(loaded: Loaded, reverted: Compaction) -> tuple[EditValue, ...]:
    """Return edits that remove the thinking after the edits of a compaction, which `loaded` is without."""
    if not capabilities_of(loaded.session.model).bound_thinking:
        return ()
    following = Turn.objects.filter(session_id=reverted.session_id, index=reverted.turn_index + 1)
    if reverted.trigger in _by_others(following.values_list("source", flat=True).first()):
        return ()
    first = first_change(edit_values(reverted.edits.all()))
    return edits_from(first, loaded.view, plan_request(loaded, trigger=TRIGGER.name).context())


def _by_others(source: str | None) -> tuple[str, ...]:
    """Return the triggers of changes before a turn of this source that leave its thinking valid.

    They are those by the provider, and by a client that has sent the changed prompt to it.
    """
    by_client = (requested.CLIENT.name,) if source in REPORTED else ()
    return (requested.PROVIDER.name, *by_client)


def thinking_clear_reverted(session: AgentSession, reverted: Compaction) -> None:
    """Remove the thinking after the edits of a reverted compaction. The caller has locked the session."""
    if capabilities_of(session.model).bound_thinking:
        # The model may be writing an answer: if so, the push of the answer finds the change.
        session.fired_turn = session.turn_count
        session.save(update_fields=["fired_turn"])
        loaded = view_load(session)
        _apply(loaded, edits_after_revert(loaded, reverted), f"compaction {reverted.number} was reverted")


def thinking_clear(session_id: UUID, *, first: int, reason: str) -> Compaction | None:
    """Remove all thinking from position `first` on. Returns None if there is none.

    Ends a compaction in progress. The caller has locked the session.
    """
    loaded = view_load(AgentSession.objects.get(pk=session_id))
    context = plan_request(loaded, trigger=TRIGGER.name).context()
    return _apply(loaded, edits_from(first, loaded.view, context), reason)


def _apply(loaded: Loaded, edits: tuple[EditValue, ...], reason: str) -> Compaction | None:
    return edits_apply(loaded, edits, trigger=TRIGGER, step=clear_thinking.NAME, reason=reason)
