"""Apply edits that no step planned, as a compaction of one step."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from compaction.component_edits import restore_edits
from compaction.edits import Edit as EditValue
from compaction.planning.pipeline import Plan, plan_of_edits
from compaction.planning.record import Change, PlanState, StepRecord, record_of
from compaction.recap import Recap as RecapValue
from compaction.strategies import shed
from compaction.triggers import Trigger, requested
from compaction.view.components import TOOLS
from sessions.models import AgentSession, Compaction
from sessions.services.compactions.apply import compaction_apply
from sessions.services.compactions.lifecycle import compaction_open, compaction_supersede
from sessions.services.compactions.planning import Loaded, plan_request, view_load


def edits_apply(
    loaded: Loaded, edits: Sequence[EditValue], *, trigger: Trigger, step: str, reason: str
) -> Compaction | None:
    """Apply the edits, if there are any. Ends a compaction in progress. The caller has locked the session."""
    if not edits:
        return None
    session, request = loaded.session, plan_request(loaded, trigger=trigger.name)
    compaction_supersede(session=session, reason=f"superseded by the {trigger.name} trigger")
    compaction = compaction_open(session=session, trigger=trigger.name, reason=reason)
    tokens = loaded.view.with_edits(edits).tokens
    record = StepRecord(name=step, edits=len(edits), tokens_after=tokens)
    plan = plan_of_edits(request, edits, recap=request.previous, steps=(record,))
    return compaction_apply(compaction=compaction, loaded=loaded, plan=plan)


def plan_of_others(
    loaded: Loaded, edits: Sequence[EditValue], *, trigger: str, recap: RecapValue | None
) -> Plan:
    """Return the plan of edits that the client or the provider made. The thinking after them stays valid."""
    after = loaded.view.with_edits(edits)
    change = Change(after=after, edits=tuple(edits), state=PlanState.DONE, trigger=trigger, goal=after.tokens)
    record = record_of(plan_request(loaded, trigger=trigger), change)
    return Plan(edits=change.edits, view=after, record=record, recap=recap)


def tools_restore(session_id: UUID) -> Compaction | None:
    """Restore the tool definitions that were removed for lack of room, without other edits.

    Returns None if they do not fit. The caller has locked the session.
    """
    loaded = view_load(AgentSession.objects.get(pk=session_id))
    edits = [edit for edit in restore_edits(loaded.view) if edit.text == TOOLS]
    room = plan_request(loaded, trigger=requested.RESTORE.name).budget_tokens
    if loaded.view.with_edits(edits).tokens > room:
        return None
    reason = "the tool definitions fit again"
    return edits_apply(loaded, edits, trigger=requested.RESTORE, step=shed.NAME, reason=reason)
