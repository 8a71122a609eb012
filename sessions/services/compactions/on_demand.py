"""Record summaries that the provider wrote on demand: a block replaces the beginning of the prompt."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction

import pricing
from compaction.adapters.tiktoken_counter import counter
from compaction.edits import Edit, Op
from compaction.messages import Role, leading_system
from compaction.on_demand import OnDemandSummary
from compaction.planning.pipeline import Plan
from compaction.provider_engine import NAME
from compaction.provider_summary import ON_DEMAND
from compaction.recap import Recap as RecapValue
from compaction.recap.parse import recap_parse
from compaction.sizes.tokens import MESSAGE_OVERHEAD
from compaction.view import Entry
from compaction.view.components import shown_memory
from pricing.usage import UsageError, usage_read
from redaction import redact_bytes
from sessions.models import AgentSession, Compaction, Recap
from sessions.selectors.redaction import redaction_for
from sessions.services.compactions.apply import compaction_apply
from sessions.services.compactions.given_edits import plan_of_others
from sessions.services.compactions.lifecycle import (
    compaction_fail,
    compaction_open,
    compaction_skip,
    compaction_supersede,
    cursor_move,
)
from sessions.services.compactions.planning import Loaded, edits_in_force, view_load
from sessions.services.compactions.recaps import RecapOrigin


class NotReplaceable(ValueError):
    """The summary cannot replace the messages before the given position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequested:
    """The messages of a session that a summary was requested for: those before position `before`.

    `in_force` are the keys of the edits of the prompt that was summarized, or None if they are unknown.
    """

    session_id: UUID
    before: int
    in_force: tuple[int, ...] | None = None


@transaction.atomic
def summary_record(requested: SummaryRequested, summary: OnDemandSummary) -> Compaction:
    """Replace the summarized messages with the provider's block, or record why that is not possible.

    If the newest compaction recorded the same failure, it is returned, because the call is a retry. Raises
    `NotReplaceable` if the prompt cannot be cut at the position.
    """
    session = AgentSession.objects.select_for_update().get(pk=requested.session_id)
    loaded = view_load(session)
    removed = _removed(loaded, requested.before)
    defect, cost, notes = _defect(summary, session), _cost(summary, session), _notes(summary)
    if defect and (failed := _same_failure(session, defect, cost, notes)):
        return failed
    compaction_supersede(session=session, reason="the provider compacted the prompt")
    compaction = compaction_open(session=session, trigger=NAME)
    compaction.cost_microusd, compaction.record = cost, notes
    if requested.in_force not in (None, tuple(edits_in_force(session.pk))):
        cursor_move(session)
        reason = "superseded: the prompt was compacted or reverted in the meantime"
        compaction_skip(compaction=compaction, reason=reason)
    elif defect:
        cursor_move(session)
        compaction_fail(compaction=compaction, reason=defect)
    else:
        origin = RecapOrigin(
            author=Recap.Author.MODEL,
            model=summary.model or session.model,
            cost_microusd=compaction.cost_microusd,
            notes=notes,
        )
        plan = _plan(loaded, removed, summary)
        compaction_apply(compaction=compaction, loaded=loaded, plan=plan, origin=origin)
    return compaction


def _removed(loaded: Loaded, before: int) -> list[Entry]:
    """Return the entries that the summary replaces: all before an answer to a user message."""
    entries = loaded.view.entries
    first = leading_system(loaded.view.messages)
    cut = next((i for i, entry in enumerate(entries) if entry.first == before and not entry.is_generated), 0)
    if cut <= first or cut not in loaded.view.cuts:
        raise NotReplaceable(f"the prompt cannot be cut before message {before}")
    last, kept = entries[cut - 1].message, entries[cut].message
    if last.role not in (Role.USER, Role.TOOL) or kept.role is not Role.ASSISTANT:
        raise NotReplaceable(f"message {before} is not an answer to a user message")
    return list(entries[first:cut])


def _defect(summary: OnDemandSummary, session: AgentSession) -> str:
    """Return why the summary cannot be used, or "". A block must be stored unchanged, so without secrets."""
    if summary.block is None:
        return summary.reason
    data = json.dumps(summary.block, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if redact_bytes(data, redaction=redaction_for(session.project_id))[1]:
        return "the summary contains a secret"
    return ""


def _same_failure(
    session: AgentSession, reason: str, cost: int | None, notes: dict[str, Any]
) -> Compaction | None:
    """Return the session's newest compaction if it recorded this response at this turn."""
    found = session.compactions.order_by("-number").first()
    if found is None:
        return None
    stored = found.state, found.trigger, found.turn_index, found.reason, found.cost_microusd, found.record
    given = Compaction.State.FAILED, NAME, max(session.turn_count - 1, 0), reason, cost, notes
    return found if stored == given else None


def _plan(loaded: Loaded, removed: list[Entry], summary: OnDemandSummary) -> Plan:
    tokens = sum(entry.message.tokens for entry in removed)
    eviction = Edit(
        strategy=ON_DEMAND,
        op=Op.EVICT,
        position=removed[0].first,
        end=removed[-1].last,
        text=json.dumps(summary.block, ensure_ascii=False, separators=(",", ":")),
        reason="replaced by a summary of the provider",
        tokens_before=tokens,
        tokens_after=MESSAGE_OVERHEAD + counter().count(summary.text),
    )
    edits = (eviction, *_without_memory(loaded))
    return plan_of_others(loaded, edits, trigger=NAME, recap=_recap(removed, summary))


def _without_memory(loaded: Loaded) -> tuple[Edit, ...]:
    """Return the edit that removes the working memory of an earlier compaction, which the summary repeats.

    A message between the block and the next one would invalidate the thinking in it.
    """
    shown = shown_memory(loaded.view.edits)
    if shown is None:
        return ()
    reason = "part of the provider's summary"
    at = shown.position
    return (Edit(strategy="memory", op=Op.MEMORY, position=at, end=at, reason=reason,
                 tokens_before=shown.tokens_after),)  # fmt: skip


def _recap(removed: list[Entry], summary: OnDemandSummary) -> RecapValue:
    """Return the summary as a recap, for people and for a later compaction by contextapp."""
    turns = [entry.message.turn for entry in removed if not entry.is_generated]
    previous = RecapValue(first_turn=min(turns, default=0), last_turn=max(turns, default=0))
    return recap_parse(summary.text, previous=previous, position=removed[-1].last)


def _cost(summary: OnDemandSummary, session: AgentSession) -> int | None:
    try:
        usage = usage_read(summary.usage)
    except UsageError:
        return None
    return pricing.price(summary.model or session.model, usage).microusd


def _notes(summary: OnDemandSummary) -> dict[str, Any]:
    calls = [{name: n for name, n in call.items() if isinstance(n, int)} for call in summary.calls]
    return {"engine": NAME, "on_demand": True, "iterations": calls}
