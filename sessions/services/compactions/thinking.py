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
from sessions.models import AgentSession, Compaction
from sessions.models.session import REPORTED
from sessions.selectors.convert import edit_values
from sessions.services.compactions.given_edits import edits_apply
from sessions.services.compactions.planning import Loaded, plan_request, view_load

TRIGGER = requested.THINKING

#: The thinking stays valid if the provider has changed the prompt, or a client that sends its own prompts.
_BY_OTHERS = Q(trigger=requested.PROVIDER.name) | Q(
    trigger=requested.CLIENT.name, session__origin__in=REPORTED
)


def prompt_changes_after(session_id: UUID, turn: int) -> bool:
    """Return whether the prompt changed after the prompt of a turn was served, and before its answer."""
    changed = Q(first_turn=turn) | Q(reverted_turn=turn)
    rows = Compaction.objects.filter(changed, session_id=session_id, state__in=Compaction.APPLIED)
    return rows.exclude(_BY_OTHERS).exists()


def edits_after_revert(loaded: Loaded, reverted: Compaction) -> tuple[EditValue, ...]:
    """Return edits that remove the thinking after the edits of a compaction, which `loaded` is without."""
    is_by_others = Compaction.objects.filter(_BY_OTHERS, pk=reverted.pk).exists()
    if is_by_others or not capabilities_of(loaded.session.model).bound_thinking:
        return ()
    first = first_change(edit_values(reverted.edits.all()))
    return edits_from(first, loaded.view, plan_request(loaded, trigger=TRIGGER.name).context())


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
