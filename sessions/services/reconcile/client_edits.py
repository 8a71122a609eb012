"""Record the messages that a client removed from its context as a compaction."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.breakdown import TokenBreakdown
from compaction.edits import Edit, Op
from compaction.pipeline import Plan
from compaction.record import Change, PlanState, record_of
from sessions.models import AgentSession, Compaction
from sessions.selectors.message_changes import REMOVED_BY_CLIENT
from sessions.selectors.reference_rates import CLIENT
from sessions.selectors.stored_rows import messages_load
from sessions.services.compactions.apply import compaction_apply
from sessions.services.compactions.lifecycle import compaction_open, compaction_supersede
from sessions.services.compactions.planning import plan_request, view_load


def context_remove(*, session: AgentSession, positions: Sequence[int]) -> Compaction:
    """Remove messages that the client removed from its context. The caller has locked the session.

    Ends a compaction in progress, because it was planned for another context.
    """
    compaction_supersede(session=session, reason="the client compacted its own context")
    compaction = compaction_open(session=session, trigger=CLIENT)
    loaded = view_load(session)
    ranges = _ranges(positions)
    edits = tuple(
        Edit(strategy=CLIENT, op=Op.EVICT, position=first, end=last, reason=REMOVED_BY_CLIENT)
        for first, last in ranges
    )
    after = loaded.view.with_edits(edits)
    change = Change(after=after, edits=edits, state=PlanState.DONE, trigger=CLIENT, goal=after.tokens)
    record = record_of(plan_request(loaded, trigger=CLIENT), change)
    plan = Plan(edits=edits, view=after, record=record, recap=loaded.previous)
    compaction_apply(compaction=compaction, loaded=loaded, plan=plan)
    session.refresh_from_db()
    rows = messages_load(session.pk, [(first, last + 1) for first, last in ranges])
    # Not the size of the view: contextapp's own edits do not shorten the client's prompt.
    context = TokenBreakdown(tokens=session.context_components)
    session.context_components = dict(context.subtract(row.value(session.format) for row in rows).tokens)
    session.save(update_fields=["context_components"])
    return compaction


def _ranges(positions: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and last position of each run of consecutive positions."""
    ranges: list[tuple[int, int]] = []
    for position in positions:
        if ranges and ranges[-1][1] == position - 1:
            ranges[-1] = (ranges[-1][0], position)
        else:
            ranges.append((position, position))
    return ranges
