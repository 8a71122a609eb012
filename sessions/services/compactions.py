"""Compactions: decide, store, revert. What is shown changes here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from compaction import formats
from compaction.capabilities import capabilities_of
from compaction.edits import Edit as EditValue
from compaction.edits import Op
from compaction.invariants.continuation import Continuation
from compaction.pipeline import Plan, plan
from compaction.policy import Budget, Policy
from compaction.recap import Recap as RecapValue
from compaction.record import State
from compaction.view import View, apply, in_force
from sessions import bodies
from sessions.budgets import budget_tokens, policy_of
from sessions.convert import edit_row, edit_value, message_bytes, message_value
from sessions.counter import counter
from sessions.handles import handle_make
from sessions.ledger import Ledger
from sessions.models import AgentSession, Compaction, Edit, Message, Preamble, PromptBase, Recap
from sessions.selectors.memory import memory_latest, memory_value
from sessions.selectors.prompts import components_of
from sessions.serving import elements_of


class CompactionOpen(Exception):
    """A compaction of the session is under way."""


class NotRevertible(Exception):
    """The compaction is not applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A session's view with what it was made of: the shown messages only, not the history."""

    session: AgentSession
    view: View
    edits: Sequence[tuple[int, EditValue]]
    raw: Mapping[int, bytes]
    previous: RecapValue | None


def view_load(session: AgentSession) -> Loaded:
    """What the session shows now, in time bounded by the budget and not by the history."""
    edits = [
        (row.pk, edit_value(row))
        for row in Edit.objects.filter(session=session, is_live=True).order_by(
            "compaction__number", "ordinal"
        )
    ]
    values = [edit for _, edit in edits]
    rows = list(_shown_rows(session, values).select_related("blob").order_by("position"))
    preamble = Preamble.objects.filter(session=session, version=session.preamble_version).first()
    view = apply(
        values, [message_value(row, session.format) for row in rows], components=components_of(preamble)
    )
    return Loaded(
        session=session,
        view=view,
        edits=edits,
        raw={row.position: message_bytes(row) for row in rows},
        previous=_previous_recap(session),
    )


def _shown_rows(session: AgentSession, edits: Sequence[EditValue]) -> QuerySet[Message]:
    """The messages that no live eviction covers, as ranges between the evicted spans."""
    spans = sorted((edit.position, edit.end) for edit in edits if edit.op is Op.EVICT)
    ranges, start = Q(), 0
    for first, last in spans:
        if first > start:
            ranges |= Q(position__gte=start, position__lt=first)
        start = max(start, last + 1)
    return Message.objects.filter(ranges | Q(position__gte=start), session=session)


def _previous_recap(session: AgentSession) -> RecapValue | None:
    row = (
        Recap.objects.filter(compaction__session=session, compaction__state=Compaction.State.DONE)
        .order_by("-compaction__number", "-version")
        .first()
    )
    return RecapValue.from_json(bodies.json_value(bodies.unpack(row.body))) if row is not None else None


def session_plan(loaded: Loaded, *, trigger: str | None, policy: Policy | None = None) -> Plan:
    """What a compaction would do now. Writes nothing."""
    session = loaded.session
    return plan(
        loaded.view,
        policy or policy_of(session.policy),
        counter(),
        budget=Budget(input_tokens=session_budget(session)),
        trigger=trigger,
        calibration=session.calibration,
        capabilities=capabilities_of(session.model),
        make_handle=partial(handle_make, session.pk),
        previous=loaded.previous,
        memory_text=memory_value(memory_latest(session_id=session.pk)).render(),
    )


def session_budget(session: AgentSession) -> int:
    return budget_tokens(
        own=session.budget_tokens, context_window=session.context_window, model=session.model
    )


@transaction.atomic
def session_compact(
    *,
    session: AgentSession,
    trigger: str,
    reason: str = "",
    instructions: str = "",
    policy: Policy | None = None,
) -> Compaction:
    """Plans deterministically and applies what was gained, under the session's lock.

    Raises `CompactionOpen` where another compaction is under way.
    """
    locked = AgentSession.objects.select_for_update().get(pk=session.pk)
    if Compaction.objects.filter(session=locked, state__in=Compaction.OPEN).exists():
        raise CompactionOpen(str(session.pk))
    loaded = view_load(locked)
    made = session_plan(loaded, trigger=trigger, policy=policy)
    return compaction_store(
        loaded=loaded,
        made=made,
        trigger=trigger,
        reason=reason,
        instructions=instructions,
        policy=policy or policy_of(locked.policy),
    )


def compaction_store(
    *, loaded: Loaded, made: Plan, trigger: str, reason: str, instructions: str, policy: Policy
) -> Compaction:
    """Writes a plan: the record, its edits and recap, and the new prompt base. The session is locked."""
    session, now = loaded.session, timezone.now()
    done = made.record.state is State.DONE
    compaction = Compaction.objects.create(
        session=session,
        number=session.compaction_count + 1,
        state=Compaction.State.DONE if done else Compaction.State.SKIPPED,
        trigger=trigger,
        reason=reason if done else "no gain: nothing became shorter",
        instructions=instructions,
        turn_index=max(session.turn_count - 1, 0),
        snapshot_position=session.message_count,
        policy=policy.to_json(),
        tokens_before=made.record.tokens_before,
        tokens_after=made.record.tokens_after,
        record=made.record.to_json(),
        cost_microusd=0,
        started_at=now,
        finished_at=now,
    )
    session.compaction_count = compaction.number
    session.fired_tokens = round(made.record.tokens_after * session.calibration)
    session.fired_turn = session.turn_count
    session.save(update_fields=["compaction_count", "fired_tokens", "fired_turn"])
    if not done:
        return compaction
    Edit.objects.bulk_create(
        edit_row(edit, compaction=compaction, ordinal=ordinal) for ordinal, edit in enumerate(made.edits)
    )
    _retire(loaded.edits, made.edits)
    if made.recap is not None:
        _store_recap(compaction, made.recap)
    base_write(session=session, view=made.view, raw=loaded.raw)
    return compaction


def _retire(before: Sequence[tuple[int, EditValue]], made: Sequence[EditValue]) -> None:
    """Edits that the new ones cover are no longer read by what comes next."""
    kept = {id(edit) for edit in in_force([*(edit for _, edit in before), *made])}
    gone = [pk for pk, edit in before if id(edit) not in kept]
    Edit.objects.filter(pk__in=gone).update(is_live=False)


def _store_recap(compaction: Compaction, recap: RecapValue) -> None:
    text = recap.render()
    Recap.objects.create(
        compaction=compaction,
        author=Recap.Author.EXTRACTOR,
        body=bodies.pack(bodies.json_bytes(recap.to_json())),
        tokens=counter().count(text),
    )


def base_write(*, session: AgentSession, view: View, raw: Mapping[int, bytes]) -> None:
    """Makes the prompt base anew from a view, with the counters that belong to it. The session is locked."""
    elements = elements_of(view, raw, session.format)
    seam = Continuation().after(formats.parse(elements.values(), format=session.format), session.format)
    PromptBase.objects.update_or_create(
        session=session,
        defaults={"compaction_number": session.compaction_count, "data": elements.pack()},
    )
    AgentSession.objects.filter(pk=session.pk).update(
        edits_revision=F("edits_revision") + 1,
        base_end=session.message_count,
        shown_components=dict(Ledger.of(view).tokens),
        needs_repair=not seam.regular,
        open_calls=list(seam.open_calls),
    )


@transaction.atomic
def compaction_revert(*, session: AgentSession, number: int) -> Compaction:
    """Takes the edits of one compaction back; the record stays. Raises `NotRevertible`."""
    locked = AgentSession.objects.select_for_update().get(pk=session.pk)
    compaction = Compaction.objects.filter(session=locked, number=number).first()
    if compaction is None or compaction.state != Compaction.State.DONE:
        raise NotRevertible(f"compaction {number} is not applied")
    compaction.state = Compaction.State.REVERTED
    compaction.reverted_turn = max(locked.turn_count - 1, 0)
    compaction.save(update_fields=["state", "reverted_turn"])
    _relive(locked)
    loaded = view_load(locked)
    base_write(session=locked, view=loaded.view, raw=loaded.raw)
    return compaction


def _relive(session: AgentSession) -> None:
    """Which edits show is found out anew: what the batch had covered stands again."""
    rows = Edit.objects.filter(session=session, compaction__state=Compaction.State.DONE)
    edits = [(row.pk, edit_value(row)) for row in rows.order_by("compaction__number", "ordinal")]
    kept = {id(edit) for edit in in_force([edit for _, edit in edits])}
    live = [pk for pk, edit in edits if id(edit) in kept]
    Edit.objects.filter(session=session).update(is_live=False)
    Edit.objects.filter(pk__in=live).update(is_live=True)
