"""The JSON response to a push. It is stored with the turn, so that a retry gets the same response."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.sizes.breakdown import TokenBreakdown
from sessions.models import Compaction
from sessions.selectors.token_budgets import prompt_size_json
from sessions.services.push.values import NewTurn, Push
from sessions.store import bodies


def answer_json(
    turn: NewTurn, push: Push, *, shown: TokenBreakdown, compactions: Sequence[Compaction] = ()
) -> bytes:
    """Return the response. `shown` is the breakdown of the next prompt, after any triggered compaction."""
    return bodies.json_bytes(
        {
            "turn": turn.index,
            "positions": {
                "first": turn.first_position - push.repeated,
                "last": turn.first_position + len(push.messages) - 1,
            },
            "prompt": prompt_size_json(
                shown=shown, context=turn.context, budget=turn.budget, calibration=turn.calibration
            ),
            "cost_microusd": turn.cost_microusd,
            "fired": [
                {
                    "trigger": compaction.trigger,
                    "compaction": compaction.number,
                    "state": compaction.state,
                    "reason": compaction.reason or compaction.record.get("reason", ""),
                }
                for compaction in compactions
            ],
            "output_spike": turn.spike.to_json() if turn.spike is not None else None,
            "redacted": [{"kind": finding.kind, "count": finding.count} for finding in push.redacted],
        }
    )
