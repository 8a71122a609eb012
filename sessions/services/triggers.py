"""What fires behind a push: decided from counters, in constant time."""

from __future__ import annotations

from typing import Any

from compaction.triggers import Firing, TriggerState, evaluate
from sessions.budgets import budget_tokens, policy_of
from sessions.ledger import Ledger
from sessions.models import AgentSession, Compaction
from sessions.services.compactions import CompactionOpen, session_compact
from sessions.services.push import Fired
from sessions.services.push_values import Pushed


class PushTrigger:
    """The triggers of a push. Those that act at once are deterministic."""

    def due(self, pushed: Pushed) -> Firing | None:
        session = pushed.session
        firing = evaluate(
            TriggerState(
                tokens=round(pushed.shown.total * session.calibration),
                budget=push_budget(pushed),
                fired_tokens=session.fired_tokens,
                turns_since_fired=pushed.turn + 1 - (session.fired_turn or 0),
                open_calls=len(pushed.seam.open_calls),
                failures=session.failures,
            ),
            policy_of(session.policy),
        )
        return None if firing is None or firing.background else firing

    def act(self, pushed: Pushed, firing: Firing) -> Fired:
        row = AgentSession.objects.get(pk=pushed.session.id)
        try:
            compaction = session_compact(session=row, trigger=firing.trigger)
        except CompactionOpen:
            refused = {"trigger": firing.trigger, "compaction": None, "state": "refused"}
            return Fired(told=[refused | {"reason": "a compaction is under way"}], shown=pushed.shown)
        row.refresh_from_db(fields=["shown_components"])
        return Fired(told=[fired_json(compaction)], shown=Ledger(tokens=row.shown_components))


def push_budget(pushed: Pushed) -> int:
    session = pushed.session
    return budget_tokens(own=session.budget_tokens, context_window=session.context_window, model=pushed.model)


def fired_json(compaction: Compaction) -> dict[str, Any]:
    return {
        "trigger": compaction.trigger,
        "compaction": compaction.number,
        "state": compaction.state,
        "reason": compaction.reason or compaction.record.get("reason", ""),
    }
