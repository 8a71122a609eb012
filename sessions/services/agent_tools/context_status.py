"""Report how full the session's prompt is and when it was last compacted."""

from __future__ import annotations

from compaction.sizes.breakdown import TokenBreakdown
from sessions.models import AgentSession, Compaction
from sessions.selectors.token_budgets import policy_of, session_budget, session_calibration
from sessions.services.agent_tools.base import AgentTool, Arguments


def run(session: AgentSession, _arguments: Arguments) -> str:
    """Return the prompt's size and budget in the provider's tokens, and the newest compactions."""
    calibration, budget = session_calibration(session), session_budget(session)
    shown = calibration.provider(TokenBreakdown(tokens=session.shown_components).total)
    whole = calibration.provider(TokenBreakdown(tokens=session.context_components).total)
    hard = policy_of(session.policy).hard
    turns = "turn" if session.turn_count == 1 else "turns"
    lines = [
        f"Prompt: {shown:,} of {budget:,} tokens ({shown / budget:.0%}).",
        f"Whole transcript: {whole:,} tokens in {session.turn_count:,} {turns}.",
        *_compactions(session),
    ]
    if hard:
        lines.append(f"The prompt is compacted at {hard:.0%} of the budget.")
    return "\n".join(lines)


def _compactions(session: AgentSession) -> list[str]:
    rows = session.compactions.order_by("-number")
    pending = rows.filter(state__in=Compaction.OPEN).first()
    done = rows.filter(state=Compaction.State.DONE).first()
    lines = [f"Compaction {pending.number} is {pending.state}."] if pending else []
    if done is None:
        return [*lines, "Not compacted yet."]
    sizes = f"{done.tokens_before:,} to {done.tokens_after:,} tokens (estimate)"
    last = f"Last compaction: number {done.number}, after turn {done.turn_index} ({done.trigger}): {sizes}."
    return [*lines, last]


TOOL = AgentTool(
    name="context_status",
    description="See how many tokens the prompt takes, its budget, and when it was last compacted.",
    schema={"type": "object", "properties": {}},
    run=run,
)
