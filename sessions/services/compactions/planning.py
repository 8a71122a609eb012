"""Load the contents of a session's prompt, and plan its compaction. Writes nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import LiteralString
from uuid import UUID

from django.db import InterfaceError, OperationalError
from psycopg.types.numeric import Int4

from compaction.adapters.tiktoken_counter import counter
from compaction.capabilities import capabilities_of
from compaction.deadline import Deadline, limited_by
from compaction.edits import Edit as EditValue
from compaction.layout import positions_kept
from compaction.planning.pipeline import Plan, PlanRequest, plan
from compaction.planning.preparation import boundary_request
from compaction.policy import Budget, Policy
from compaction.provider_engine import NAME as PROVIDER
from compaction.provider_summary import ON_DEMAND
from compaction.recap import Recap as RecapValue
from compaction.recap.spans import Summary
from compaction.sizes.calibration import Calibration
from compaction.triggers import hard
from compaction.view import View, apply
from compaction.view.components import MEMORY, SHEDDABLE
from sessions.models import AgentSession, PromptSnapshot
from sessions.models.session import GATEWAY
from sessions.selectors.compactions.client_context import affects
from sessions.selectors.compactions.recaps import recap_value
from sessions.selectors.memory.revisions import memory_latest, memory_notes
from sessions.selectors.prompts.plan_sources import PlanSources, plan_sources
from sessions.selectors.token_budgets import policy_of, session_budget, session_calibration
from sessions.selectors.transcripts.rows import END, edits_load, messages_load, visible_spans
from sessions.services.compactions.long_histories import history_shorten, with_shortening
from sessions.store.edit_texts import Base
from sessions.store.handles import handle_make
from sessions.store.postgres import rows_fetch

log = logging.getLogger(__name__)

#: Seconds of wall-clock time for one plan. After that, the compaction fails, and a push runs cheaper steps.
PLAN_SECONDS = 20.0

_BOUNDARY: LiteralString = """
SELECT first_position + message_count, budget, calibration_factor, calibration_overhead
  FROM agent_sessions_turn WHERE session_id = %s AND index = %s
"""


class PlanningFailed(Exception):
    """A compaction could not be planned. The message is safe to show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A session's view and its sources: the messages in the prompt, not the whole history.

    `has_memory` states whether a working memory was written. `base` is the text of the newest recap.
    `shortening` are edits that are not stored yet, which shortened a very long history. `omitted_since` is
    the number of messages in the view that the client has omitted since.
    """

    session: AgentSession
    view: View
    edits: Sequence[tuple[int, EditValue]]
    raw: Mapping[int, bytes]
    previous: RecapValue | None
    has_memory: bool
    base: Base | None
    shortening: tuple[EditValue, ...] = ()
    omitted_since: int = 0


def view_load(
    session: AgentSession, *, edits: Iterable[int] | None = None, shortens: bool = False, end: int = END
) -> Loaded:
    """Load the session's current view. Takes time in proportion to the prompt.

    `edits` are keys of edits to apply instead of those in force. `shortens` bounds the prompt, for a plan.
    Messages from position `end` on, and those that the client had omitted by then, are left out.
    """
    sources = plan_sources(session)
    keys = sources.edits if edits is None else edits
    start = session.context_start
    found = [(key, edit) for key, edit in edits_load(keys) if affects(edit, start)]
    values = [edit for _, edit in found]
    shortening = history_shorten(session, values, counter=counter()) if shortens else ()
    values += shortening
    rows = [
        row
        for row in messages_load(session.pk, visible_spans(values, start=start, end=end))
        if row.omitted_from is None or row.omitted_from >= end
    ]
    messages = [row.value(session.format) for row in rows]
    view = apply(values, messages, components=sources.components)
    return Loaded(
        session=session,
        view=view,
        edits=found,
        raw={row.position: row.data for row in rows},
        previous=_previous_recap(sources, values),
        has_memory=sources.has_memory,
        base=sources.base,
        shortening=shortening,
        omitted_since=sum(row.omitted_from is not None for row in rows),
    )


def edits_in_force(session_id: UUID) -> Sequence[int]:
    """Return the keys of the edits in force."""
    snapshots = PromptSnapshot.objects.filter(session=session_id)
    return snapshots.values_list("edits", flat=True).first() or ()


def _previous_recap(sources: PlanSources, edits: Sequence[EditValue]) -> RecapValue | None:
    """Return the newest recap, or None if the prompt contains it as a summary that no step edits."""
    if sources.recap is None:
        return None
    is_block = sources.trigger == PROVIDER and any(edit.strategy == ON_DEMAND for edit in edits)
    return None if is_block else recap_value(sources.recap)


def session_plan(
    loaded: Loaded, *, trigger: str | None, policy: Policy | None, summary: Summary | None = None
) -> Plan:
    """Plan a compaction of the session's current state, with a model's summary if one is ready.

    Raises `OutOfTime` after `PLAN_SECONDS`.
    """
    with limited_by(Deadline(PLAN_SECONDS)):
        made = plan(plan_request(loaded, trigger=trigger, policy=policy, summary=summary))
    return with_shortening(made, loaded.shortening)


def preview_plan(session: AgentSession, *, policy: Policy | None = None) -> Plan:
    """Plan a compaction by a user without applying it. Raises `PlanningFailed`."""
    try:
        return session_plan(view_load(session, shortens=True), trigger="user", policy=policy)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        log.exception("a compaction of session %s could not be planned", session.pk)
        raise PlanningFailed(failure_reason(error, session.pk)) from error


def failure_reason(error: Exception, id: UUID) -> str:
    """Return why planning failed, for the record of the compaction.

    The message of an exception may quote a secret or a statement, so it is only logged, with `id`.
    """
    return f"planning failed ({type(error).__name__}); see {id} in the server log"


def plan_request(
    loaded: Loaded, *, trigger: str | None, policy: Policy | None = None, summary: Summary | None = None
) -> PlanRequest:
    """Return the inputs of a plan for the session."""
    request = replace(_request(loaded, trigger=trigger, policy=policy), summary=summary)
    return _with_memory(request, loaded, end=END)


def _request(loaded: Loaded, *, trigger: str | None, policy: Policy | None = None) -> PlanRequest:
    session = loaded.session
    return PlanRequest(
        view=loaded.view,
        policy=policy or policy_of(session.policy, model=session.model),
        counter=counter(),
        budget=Budget(input_tokens=session_budget(session)),
        trigger=trigger,
        calibration=session_calibration(session),
        capabilities=capabilities_of(session.model),
        make_handle=partial(handle_make, session.pk),
        previous=loaded.previous,
        sheddable=sheddable_of(session),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """The plan boundary: the position after it, and the budget and the calibration of its turn."""

    end: int
    budget: int | None
    calibration: Calibration


def boundary_of(session: AgentSession, turn: int) -> Boundary | None:
    """Return the plan boundary after a turn, or None if the session has no such turn."""
    rows = rows_fetch(_BOUNDARY, [session.pk, Int4(turn)])
    if not rows:
        return None
    [(end, budget, factor, overhead)] = rows
    return Boundary(
        end=end, budget=budget, calibration=Calibration(initial=factor or 1.0, overhead=overhead or 0)
    )


def boundary_plan(loaded: Loaded, boundary: Boundary) -> tuple[PlanRequest, Plan]:
    """Plan a hard compaction of the messages up to the plan boundary.

    The budget and the calibration are those of its turn. Raises `OutOfTime` after `PLAN_SECONDS`.
    """
    request = replace(_request(loaded, trigger=hard.TRIGGER.name), calibration=boundary.calibration)
    if boundary.budget:
        request = replace(request, budget=Budget(input_tokens=boundary.budget))
    request = _with_memory(boundary_request(request), loaded, end=boundary.end)
    with limited_by(Deadline(PLAN_SECONDS)):
        return request, plan(request)


def _with_memory(request: PlanRequest, loaded: Loaded, *, end: int) -> PlanRequest:
    """Add the working memory, without items whose source messages the prompt keeps.

    It keeps all messages from position `end` on.
    """
    row = memory_latest(session_id=loaded.session.pk) if loaded.has_memory else None
    notes = memory_notes(row)
    kept: frozenset[int] = frozenset()
    if notes.origins:
        kept = positions_kept(request.view, request.policy, budget_tokens=request.budget_tokens)
        positions = (origin.position for origin in notes.origins.values())
        kept |= {position for position in positions if position is not None and position >= end}
    return replace(
        request, memory_text=notes.render(kept), memory_revision=row.number if row is not None else None
    )


def sheddable_of(session: AgentSession) -> tuple[str, ...]:
    """Return the components that a compaction may shed: the gateway forwards the tools of its clients."""
    return (MEMORY,) if session.origin == GATEWAY else SHEDDABLE
