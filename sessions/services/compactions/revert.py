"""Revert a compaction, and apply a reverted one again."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from accounts.actors import SYSTEM, Actor
from compaction.planning.pipeline import Plan, plan_of_edits
from compaction.triggers import requested
from sessions.models import AgentSession, Compaction, WebhookEvent
from sessions.selectors.compactions.recaps import recap_newest, recap_value
from sessions.selectors.convert import edit_values
from sessions.selectors.token_budgets import session_budget, session_calibration
from sessions.services.compactions.apply import compaction_apply
from sessions.services.compactions.lifecycle import compaction_open, require_none_in_progress
from sessions.services.compactions.planning import Loaded, plan_request, view_load
from sessions.services.compactions.snapshots import edits_applied, snapshot_rebuild
from sessions.services.compactions.thinking import edits_after_revert, thinking_clear_reverted
from sessions.services.prompts.served import next_prompt_turn
from sessions.services.sessions.audit import session_audit
from sessions.services.sessions.derived import derived_refresh_on_commit
from sessions.services.webhooks.deliveries import compaction_event_emit


class NotRevertible(Exception):
    """The compaction is not applied."""


class NotReappliable(Exception):
    """The compaction is not reverted, or a later one is applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevertPreview:
    """The next prompt before and after reverting a compaction, in provider tokens and messages."""

    before: int
    after: int
    budget: int
    messages_before: int
    messages_after: int

    @property
    def fits(self) -> bool:
        return self.after <= self.budget

    @property
    def has_effect(self) -> bool:
        return (self.before, self.messages_before) != (self.after, self.messages_after)


def revert_preview(*, session: AgentSession, number: int) -> RevertPreview:
    """Return what reverting a compaction would do to the next prompt. Stores nothing."""
    before = view_load(session).view
    loaded = view_load(session, edits=edits_applied(session=session, without=number))
    reverted = Compaction.objects.filter(session=session, number=number).first()
    cleared = edits_after_revert(loaded, reverted) if reverted is not None else ()
    after = loaded.view.with_edits(cleared)
    calibration = session_calibration(session)
    return RevertPreview(
        before=calibration.provider(before.tokens),
        after=calibration.provider(after.tokens),
        budget=session_budget(session),
        messages_before=len(before.entries),
        messages_after=len(after.entries),
    )


@transaction.atomic
def compaction_revert(*, session: AgentSession, number: int, actor: Actor = SYSTEM) -> Compaction:
    """Undo the edits of one compaction; its record is kept. Raises `NotRevertible`."""
    locked = AgentSession.objects.select_for_update().get(pk=session.pk)
    compaction = Compaction.objects.filter(session=locked, number=number).first()
    if compaction is None or compaction.state != Compaction.State.DONE:
        raise NotRevertible(f"compaction {number} is not applied")
    compaction.state = Compaction.State.REVERTED
    compaction.reverted_turn = next_prompt_turn(locked)
    compaction.save(update_fields=["state", "reverted_turn"])
    compaction.refresh_from_db(fields=["reverted_turn"])
    snapshot_rebuild(session=locked)
    thinking_clear_reverted(locked, compaction)
    session_audit(locked, "compaction.reverted", actor, compaction=number)
    compaction_event_emit(compaction=compaction, event=WebhookEvent.FINISHED)
    derived_refresh_on_commit(session=locked)
    return compaction


@transaction.atomic
def compaction_reapply(*, session: AgentSession, number: int, actor: Actor = SYSTEM) -> Compaction:
    """Apply the edits of a reverted compaction again, as a new compaction: past prompts stay as they were.

    Raises `NotReappliable` or `CompactionInProgress`.
    """
    locked = AgentSession.objects.select_for_update().get(pk=session.pk)
    reverted = Compaction.objects.filter(session=locked, number=number).first()
    if reverted is None or reverted.state != Compaction.State.REVERTED:
        raise NotReappliable(f"compaction {number} is not reverted")
    later = locked.compactions.filter(number__gt=number, state=Compaction.State.DONE)
    if later.exclude(trigger=requested.THINKING.name).exists():
        raise NotReappliable("a later compaction is applied; compact the session again instead")
    require_none_in_progress(locked)
    reason = f"applies compaction {number} again"
    compaction = compaction_open(session=locked, trigger="user", reason=reason)
    loaded = view_load(locked)
    compaction_apply(compaction=compaction, loaded=loaded, plan=_plan_again(reverted, loaded))
    session_audit(locked, "compaction.reapplied", actor, compaction=number)
    derived_refresh_on_commit(session=locked)
    return compaction


def _plan_again(reverted: Compaction, loaded: Loaded) -> Plan:
    edits = edit_values(reverted.edits.order_by("ordinal"))
    recap = recap_newest(reverted)
    return plan_of_edits(
        plan_request(loaded, trigger="user"),
        edits,
        recap=recap_value(recap) if recap is not None else loaded.previous,
    )
