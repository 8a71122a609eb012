"""Record compactions by the provider, from the response to a request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from compaction.adapters.tiktoken_counter import counter
from compaction.edits import Edit, Op
from compaction.messages import Message, leading_system
from compaction.planning.pipeline import Plan
from compaction.planning.record import Record
from compaction.provider_engine import NAME, ProviderReport
from compaction.provider_summary import is_compaction, summary_text
from compaction.recap import Recap as RecapValue
from compaction.recap import extract
from compaction.sizes.breakdown import TokenBreakdown
from compaction.view import Entry
from sessions.models import AgentSession, Compaction
from sessions.selectors.token_budgets import session_calibration
from sessions.services.compactions.apply import compaction_apply
from sessions.services.compactions.given_edits import plan_of_others
from sessions.services.compactions.lifecycle import compaction_open, compaction_supersede
from sessions.services.compactions.planning import Loaded, view_load
from sessions.services.compactions.recaps import RecapOrigin

#: Size of the readable recap beside an opaque summary, in tokens.
_RECAP_TOKENS = 2_000

#: The component that the provider clears.
_CLEARED = "tool_outputs"


def provider_compaction_record(
    *, session_id: UUID, report: ProviderReport | None, messages: Sequence[Message]
) -> Compaction | None:
    """Record what the provider reports about a turn. `messages` are those of the turn, already stored.

    A summary removes everything before it from the prompt. Cleared content stays in the prompt that the
    client sends, so the provider reports it with each response; it is recorded when it has grown. Returns
    None if there is nothing new. The caller has locked the session.
    """
    session = AgentSession.objects.select_for_update().get(pk=session_id)
    summary = next((message for message in reversed(messages) if is_compaction(message)), None)
    if summary is None and not _has_grown(session, report):
        return None
    loaded = view_load(session)
    if summary is not None and report is None and not _entries_before(loaded, summary):
        return None  # the client has removed the messages itself
    compaction_supersede(session=session, reason="the provider compacted the prompt")
    compaction = compaction_open(session=session, trigger=NAME)
    plan = _plan(loaded, report, summary)
    notes: dict[str, Any] = {"engine": NAME}
    if report is not None:
        notes |= report.to_json()
    compaction_apply(compaction=compaction, loaded=loaded, plan=plan, origin=RecapOrigin(notes=notes))
    _count_cleared(compaction, plan)
    return compaction


def _count_cleared(compaction: Compaction, plan: Plan) -> None:
    """Subtract what the provider cleared, which the view still shows, from the components of the record."""
    cleared = plan.view.tokens - plan.record.tokens_after
    if cleared:
        after = compaction.record["components"]["after"]
        changed = {**after, _CLEARED: after[_CLEARED] - cleared}
        compaction.record = {
            **compaction.record,
            "components": {**compaction.record["components"], "after": changed},
        }
        compaction.save(update_fields=Compaction.RECORD)


def _has_grown(session: AgentSession, report: ProviderReport | None) -> bool:
    """Return whether the provider cleared more than at the last time, or anything else than clearing."""
    if report is None:
        return False
    if report.dropped:
        return True
    rows = session.compactions.filter(trigger=NAME, facts__has_key="applied_edits").order_by("-number")
    last = rows.values_list("facts__applied_edits", flat=True).first() or []
    known = ProviderReport(applied=tuple(last))
    return (report.cleared_outputs, report.cleared_thinking) != (0, 0) and (
        report.cleared_outputs > known.cleared_outputs or report.cleared_thinking > known.cleared_thinking
    )


def _plan(loaded: Loaded, report: ProviderReport | None, summary: Message | None) -> Plan:
    removed = _entries_before(loaded, summary) if summary is not None else []
    edits = _evictions(removed)
    plan = plan_of_others(loaded, edits, trigger=NAME, recap=_recap(loaded, removed, summary))
    if report is None:
        return plan
    outputs = TokenBreakdown.of_view(plan.view).tokens.get(_CLEARED, 0)
    return replace(plan, record=_with_cleared(plan.record, report, loaded.session, outputs))


def _entries_before(loaded: Loaded, summary: Message) -> list[Entry]:
    """Return the entries that the provider ignores from now on, without the leading system messages."""
    entries = loaded.view.entries
    first = leading_system(loaded.view.messages)
    return [entry for entry in entries[first:] if entry.last < summary.position]


def _evictions(removed: Sequence[Entry]) -> list[Edit]:
    if not removed:
        return []
    tokens = sum(entry.message.tokens for entry in removed)
    edit = Edit(
        strategy=NAME,
        op=Op.EVICT,
        position=removed[0].first,
        end=removed[-1].last,
        reason="replaced by the provider's summary",
        tokens_before=tokens,
    )
    return [edit]


def _with_cleared(
    record: Record, report: ProviderReport, session: AgentSession, cleared_at_most: int
) -> Record:
    """Return the record with the cleared tokens, as estimates."""
    cleared = min(round(report.cleared_tokens / session_calibration(session).factor), cleared_at_most)
    return replace(
        record,
        tokens_after=record.tokens_after - cleared,
        tokens_saved=record.tokens_saved + cleared,
        collapsed=record.collapsed + report.cleared_outputs,
    )


def _recap(loaded: Loaded, removed: Sequence[Entry], summary: Message | None) -> RecapValue | None:
    """Return a readable recap of the removed messages if the provider's summary is opaque."""
    if summary is None or summary_text(summary) or not removed:
        return loaded.previous
    pushed = [entry.message for entry in removed if not entry.is_generated]
    return extract(pushed, counter=counter(), cap_tokens=_RECAP_TOKENS, previous=loaded.previous)
