"""Apply edits that no step planned, as a compaction of one step."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.edits import Edit as EditValue
from compaction.pipeline import plan_of_edits
from compaction.record import StepRecord
from compaction.triggers import Trigger
from sessions.models import Compaction
from sessions.services.compactions.apply import compaction_apply
from sessions.services.compactions.lifecycle import compaction_open, compaction_supersede
from sessions.services.compactions.planning import Loaded, plan_request
from sessions.services.compactions.recaps import RecapOrigin


def edits_apply(
    loaded: Loaded, edits: Sequence[EditValue], *, trigger: Trigger, step: str, reason: str
) -> Compaction | None:
    """Apply the edits, if there are any. Ends a compaction in progress. The caller has locked the session."""
    if not edits:
        return None
    session, request = loaded.session, plan_request(loaded, trigger=trigger.name)
    compaction_supersede(session=session, reason=f"superseded by the {trigger.name} trigger")
    compaction = compaction_open(
        session=session,
        trigger=trigger.name,
        state=Compaction.State.RUNNING,
        policy=request.policy,
        reason=reason,
    )
    tokens = loaded.view.with_edits(edits).tokens
    record = StepRecord(name=step, edits=len(edits), tokens_after=tokens)
    plan = plan_of_edits(request, edits, recap=request.previous, steps=(record,))
    return compaction_apply(compaction=compaction, loaded=loaded, plan=plan, origin=RecapOrigin())
