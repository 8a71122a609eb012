"""Load the contents of a session's prompt, and plan its compaction. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from compaction.adapters.tiktoken_counter import counter
from compaction.calibration import Calibration
from compaction.capabilities import capabilities_of
from compaction.edits import Edit as EditValue
from compaction.layout import positions_kept
from compaction.pipeline import Plan, PlanRequest, plan
from compaction.policy import Budget, Policy
from compaction.recap import Recap as RecapValue
from compaction.recap.spans import Summary
from compaction.view import View, apply
from sessions.models import AgentSession, MemoryRevision, Preamble, PromptSnapshot
from sessions.selectors.client_context import affects
from sessions.selectors.memory import memory_latest, memory_notes
from sessions.selectors.prompts import components_of
from sessions.selectors.recaps import recap_value, recaps_of
from sessions.selectors.stored_rows import edits_load, messages_load, visible_spans
from sessions.selectors.token_budgets import budget_tokens, calibration_of, policy_of
from sessions.store.handles import handle_make


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A session's view and its sources: the messages in the prompt, not the whole history."""

    session: AgentSession
    view: View
    edits: Sequence[tuple[int, EditValue]]
    raw: Mapping[int, bytes]
    previous: RecapValue | None


def view_load(session: AgentSession, *, edits: Sequence[int] | None = None) -> Loaded:
    """Load the session's current view. Takes time in proportion to the budget, not to the history.

    `edits` are keys of edits to apply instead of those in force.
    """
    keys = edits_in_force(session.pk) if edits is None else edits
    start = session.context_start
    found = [(key, edit) for key, edit in edits_load(keys) if affects(edit, start)]
    values = [edit for _, edit in found]
    rows = messages_load(session.pk, visible_spans(values, start=start))
    preamble = Preamble.objects.filter(session=session, version=session.preamble_version).first()
    messages = [row.value(session.format) for row in rows]
    view = apply(values, messages, components=components_of(preamble))
    return Loaded(
        session=session,
        view=view,
        edits=found,
        raw={row.position: row.data for row in rows},
        previous=_previous_recap(session),
    )


def edits_in_force(session_id: UUID) -> Sequence[int]:
    """Return the keys of the edits in force."""
    snapshots = PromptSnapshot.objects.filter(session=session_id)
    return snapshots.values_list("edits", flat=True).first() or ()


def _previous_recap(session: AgentSession) -> RecapValue | None:
    row = recaps_of(session.pk).first()
    return recap_value(row) if row is not None else None


def session_plan(
    loaded: Loaded, *, trigger: str | None, policy: Policy | None = None, summary: Summary | None = None
) -> Plan:
    """Plan a compaction of the session's current state, with a model's summary if one is ready."""
    return plan(plan_request(loaded, trigger=trigger, policy=policy, summary=summary))


def plan_request(
    loaded: Loaded, *, trigger: str | None, policy: Policy | None = None, summary: Summary | None = None
) -> PlanRequest:
    """Return the inputs of a plan for the session."""
    session, policy = loaded.session, policy or policy_of(loaded.session.policy)
    memory = memory_latest(session_id=session.pk)
    return PlanRequest(
        view=loaded.view,
        policy=policy,
        counter=counter(),
        budget=Budget(input_tokens=session_budget(session)),
        trigger=trigger,
        calibration=session_calibration(session),
        capabilities=capabilities_of(session.model),
        make_handle=partial(handle_make, session.pk),
        previous=loaded.previous,
        summary=summary,
        memory_text=_memory_text(loaded, policy, memory),
        memory_revision=memory.number if memory is not None else None,
    )


def _memory_text(loaded: Loaded, policy: Policy, memory: MemoryRevision | None) -> str:
    """Return the working memory for the prompt, without items whose source messages the prompt keeps."""
    session, notes = loaded.session, memory_notes(memory)
    if not notes.origins:
        return notes.render()
    budget = session_calibration(session).room(session_budget(session))
    return notes.render(positions_kept(loaded.view, policy, budget_tokens=budget))


def session_budget(session: AgentSession) -> int:
    """Return the budget of the session's prompt, in the provider's tokens."""
    return budget_tokens(
        own=session.budget_tokens, context_window=session.context_window, model=session.model
    )


def session_calibration(session: AgentSession) -> Calibration:
    """Return the session's calibration: how its provider counts tokens."""
    return calibration_of(session.calibration, model=session.model)
