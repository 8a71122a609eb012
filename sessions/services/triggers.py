"""What fires behind a push: decided from counters, in constant time."""

from __future__ import annotations

from typing import Any

from compaction.triggers import TriggerState, evaluate
from sessions.budgets import policy_of
from sessions.ledger import Ledger
from sessions.models import AgentSession, Compaction
from sessions.services.compactions import CompactionOpen, session_compact
from sessions.services.push import Pushed


def fire(pushed: Pushed, *, budget: int) -> tuple[list[dict[str, Any]], Ledger]:
    """Runs what fires, within the transaction of the push; what fired, and the shown sizes after it."""
    session = pushed.session
    policy = policy_of(session.policy)
    firing = evaluate(
        TriggerState(
            tokens=round(pushed.shown.total * session.calibration),
            budget=budget,
            fired_tokens=session.fired_tokens,
            turns_since_fired=pushed.turn + 1 - (session.fired_turn or 0),
            open_calls=len(pushed.seam.open_calls),
            failures=session.failures,
        ),
        policy,
    )
    if firing is None or firing.background:
        return [], pushed.shown
    row = AgentSession.objects.get(pk=session.id)
    try:
        compaction = session_compact(session=row, trigger=firing.trigger)
    except CompactionOpen:
        refused = {"trigger": firing.trigger, "compaction": None, "state": "refused"}
        return [refused | {"reason": "a compaction is under way"}], pushed.shown
    row.refresh_from_db(fields=["shown_components"])
    return [fired_json(compaction)], Ledger(tokens=row.shown_components)


def fired_json(compaction: Compaction) -> dict[str, Any]:
    return {
        "trigger": compaction.trigger,
        "compaction": compaction.number,
        "state": compaction.state,
        "reason": compaction.reason or compaction.record.get("reason", ""),
    }
