"""Compactions: open, apply, revert. What is shown changes here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, LiteralString

from django.db import connection, transaction
from django.db.models import F, Max
from django.utils import timezone
from psycopg.types.numeric import Int4, Int8

from accounts.actors import SYSTEM, Actor
from accounts.models import Project
from accounts.services import audit_record
from compaction.adapters.tiktoken_counter import counter
from compaction.breakdown import TokenBreakdown
from compaction.edits import Edit as EditValue
from compaction.pipeline import Plan
from compaction.policy import Policy
from compaction.recap import Recap as RecapValue
from compaction.record import PlanState
from compaction.tools import edited_tools
from compaction.triggers import TRIGGERS
from compaction.view import View, in_force
from sessions.models import AgentSession, Compaction, Edit, Recap, WebhookEvent
from sessions.selectors.convert import edit_row, edit_value
from sessions.selectors.recaps import recap_columns
from sessions.selectors.token_budgets import policy_of
from sessions.services.compactions.planning import Loaded, session_plan, view_load
from sessions.services.compactions.recap_storage import recaps_trim
from sessions.services.dispatch import compaction_dispatch
from sessions.services.reference_scans import reference_scan_schedule
from sessions.services.sessions.derived import derived_refresh_on_commit
from sessions.services.webhooks.deliveries import compaction_event_emit
from sessions.store.postgres import execute, raw_connection, rows_copy
from sessions.store.prompt_bytes import messages_of_view

#: Not by Django, which would write all of the prompt into the text of the statement, in hexadecimal.
_WRITE_SNAPSHOT: LiteralString = """
INSERT INTO agent_sessions_promptsnapshot (session_id, compaction_number, data, edits)
VALUES (%s, %s, %b, %s::bigint[])
    ON CONFLICT (session_id) DO UPDATE
   SET compaction_number = excluded.compaction_number, data = excluded.data, edits = excluded.edits
"""


class CompactionInProgress(Exception):
    """A compaction of the session is under way."""


class NotRevertible(Exception):
    """The compaction is not applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who wrote the recap of a plan, and what else its record tells."""

    author: Recap.Author = Recap.Author.EXTRACTOR
    model: str = ""
    cost_microusd: int | None = 0
    notes: Mapping[str, Any] = field(default_factory=dict)


# -- Opening ------------------------------------------------------------------------------------


def compaction_open(
    *,
    session: AgentSession,
    trigger: str,
    state: Compaction.State,
    policy: Policy,
    reason: str = "",
    instructions: str = "",
    upgrades: Compaction | None = None,
) -> Compaction:
    """Write the row of a compaction and move the re-fire cursor to it. The session is locked.

    Raises KeyError for a trigger that is not registered: pages explain every recorded trigger.
    """
    now, shown = timezone.now(), TokenBreakdown(tokens=session.shown_components).total
    compaction = Compaction.objects.create(
        session=session,
        number=_newest_number(session) + 1,
        state=state,
        trigger=TRIGGERS[trigger].name,
        reason=reason,
        instructions=instructions,
        turn_index=max(session.turn_count - 1, 0),
        snapshot_position=session.message_count,
        policy=policy.to_json(),
        tokens_before=shown,
        upgrades=upgrades,
        dispatched_at=now,
        started_at=now if state == Compaction.State.RUNNING else None,
        finished_at=None if state in Compaction.OPEN else now,
    )
    session.fired_tokens = round(shown * session.calibration)
    session.fired_turn = session.turn_count
    session.save(update_fields=["fired_tokens", "fired_turn"])
    if state == Compaction.State.RUNNING:
        compaction_event_emit(compaction=compaction, event=WebhookEvent.STARTED)
    return compaction


def _newest_number(session: AgentSession) -> int:
    """The number of the session's newest compaction, however that ended; 0 where there is none."""
    return session.compactions.aggregate(newest=Max("number"))["newest"] or 0


def compaction_queue(
    *,
    session: AgentSession,
    trigger: str,
    policy: Policy,
    reason: str = "",
    instructions: str = "",
    upgrades: Compaction | None = None,
) -> Compaction:
    """Opens a compaction for the background and tells a worker behind the commit. The session is locked."""
    compaction = compaction_open(
        session=session,
        trigger=trigger,
        state=Compaction.State.PENDING,
        policy=policy,
        reason=reason,
        instructions=instructions,
        upgrades=upgrades,
    )
    transaction.on_commit(partial(compaction_dispatch, compaction.pk))
    return compaction


def compaction_in_progress(session: AgentSession) -> Compaction | None:
    """The one open compaction of the session; None where there is none."""
    return Compaction.objects.filter(session=session, state__in=Compaction.OPEN).first()


def compaction_skip(*, compaction: Compaction, reason: str) -> None:
    """Ends an open compaction that is not to act. Its session is locked."""
    compaction.state = Compaction.State.SKIPPED
    compaction.reason = reason
    compaction.finished_at = timezone.now()
    compaction.save(update_fields=["state", "reason", "finished_at", "cost_microusd", "record"])
    compaction_event_emit(compaction=compaction, event=WebhookEvent.FINISHED)


# -- Acting -------------------------------------------------------------------------------------


@transaction.atomic
def session_compact(
    *,
    session: AgentSession,
    trigger: str,
    reason: str = "",
    instructions: str = "",
    policy: Policy | None = None,
    supersede: bool = False,
) -> Compaction:
    """Plans deterministically and applies what was gained, under the session's lock.

    Where another compaction is under way it raises `CompactionInProgress`, or ends that one with `supersede`.
    """
    locked = AgentSession.objects.select_for_update().get(pk=session.pk)
    other = compaction_in_progress(locked)
    if other is not None and not supersede:
        raise CompactionInProgress(str(session.pk))
    if other is not None:
        compaction_skip(compaction=other, reason=f"superseded by the {trigger} trigger")
    policy = policy or policy_of(locked.policy)
    compaction = compaction_open(
        session=locked,
        trigger=trigger,
        state=Compaction.State.RUNNING,
        policy=policy,
        reason=reason,
        instructions=instructions,
    )
    loaded = view_load(locked)
    made = session_plan(loaded, trigger=trigger, policy=policy)
    return compaction_apply(compaction=compaction, loaded=loaded, made=made, origin=Origin())


def compaction_apply(*, compaction: Compaction, loaded: Loaded, made: Plan, origin: Origin) -> Compaction:
    """Writes a plan: the record, its edits and recap, and the new prompt snapshot. The session is locked."""
    session, done = loaded.session, made.record.state is PlanState.DONE
    compaction.state = Compaction.State.DONE if done else Compaction.State.SKIPPED
    if not done:
        compaction.reason = "no gain: nothing became shorter"
    compaction.turn_index = max(session.turn_count - 1, 0)
    compaction.snapshot_position = session.message_count
    compaction.tokens_before = made.record.tokens_before
    compaction.tokens_after = made.record.tokens_after
    shown = TokenBreakdown.of_view(made.view)
    components = {"before": TokenBreakdown.of_view(loaded.view).tokens, "after": shown.tokens}
    compaction.record = {**made.record.to_json(), **origin.notes, "components": components}
    compaction.cost_microusd = origin.cost_microusd
    compaction.finished_at = timezone.now()
    compaction.save()
    session.fired_tokens = round(made.record.tokens_after * session.calibration)
    session.fired_turn = session.turn_count
    session.compaction_count += done
    session.save(update_fields=["compaction_count", "fired_tokens", "fired_turn"])
    if done:
        standing = _store_edits(compaction, loaded, made)
        # Also where a later step evicted over it: the next plan folds it, so that nothing told is lost.
        if made.recap is not None and made.recap is not loaded.previous:
            _store_recap(compaction, made, made.recap, origin)
        snapshot_write(session=session, view=made.view, raw=loaded.raw, edits=standing, shown=shown)
    compaction_event_emit(compaction=compaction, event=WebhookEvent.FINISHED)
    return compaction


def _store_edits(compaction: Compaction, loaded: Loaded, made: Plan) -> list[int]:
    """Writes the edits of a plan; the keys of those that are in force with them."""
    tools = edited_tools(made.edits, loaded.view.transcript)
    rows = [
        edit_row(edit, compaction=compaction, ordinal=n, tool=tool)
        for n, (edit, tool) in enumerate(zip(made.edits, tools, strict=True))
    ]
    rows_copy(Edit._meta.db_table, rows)
    keys = compaction.edits.order_by("ordinal").values_list("pk", flat=True)
    return _in_force([*loaded.edits, *zip(keys, made.edits, strict=True)])


def _in_force(edits: Sequence[tuple[int, EditValue]]) -> list[int]:
    """The keys of those that no later one covers."""
    kept = {id(edit) for edit in in_force([edit for _, edit in edits])}
    return [pk for pk, edit in edits if id(edit) in kept]


def _store_recap(compaction: Compaction, made: Plan, recap: RecapValue, origin: Origin) -> None:
    Recap.objects.create(
        compaction=compaction,
        author=origin.author,
        model=origin.model,
        tokens=counter().count(recap.render()),
        **recap_columns(recap, made.edits),
    )
    recaps_trim(compaction.session_id)


def snapshot_write(
    *,
    session: AgentSession,
    view: View,
    raw: Mapping[int, bytes],
    edits: Sequence[int],
    shown: TokenBreakdown,
) -> None:
    """Write the prompt snapshot of a view and the keys of its edits, with the session's counters.

    The session is locked.
    """
    messages, after = messages_of_view(view, raw, session.format)
    snapshot = [session.pk, Int4(session.compaction_count), messages.pack(), list(map(Int8, edits))]
    with connection.wrap_database_errors:
        execute(raw_connection(), _WRITE_SNAPSHOT, snapshot)
    AgentSession.objects.filter(pk=session.pk).update(
        edits_revision=F("edits_revision") + 1,
        snapshot_end=session.message_count,
        shown_components=dict(shown.tokens),
        needs_repair=not after.regular,
        open_calls=list(after.open_calls),
    )
    reference_scan_schedule(session.pk)


# -- Undoing ------------------------------------------------------------------------------------


@transaction.atomic
def compaction_revert(*, session: AgentSession, number: int, actor: Actor = SYSTEM) -> Compaction:
    """Takes the edits of one compaction back; the record stays. Raises `NotRevertible`."""
    locked = AgentSession.objects.select_for_update().get(pk=session.pk)
    compaction = Compaction.objects.filter(session=locked, number=number).first()
    if compaction is None or compaction.state != Compaction.State.DONE:
        raise NotRevertible(f"compaction {number} is not applied")
    compaction.state = Compaction.State.REVERTED
    compaction.reverted_turn = max(locked.turn_count - 1, 0)
    compaction.save(update_fields=["state", "reverted_turn"])
    snapshot_rebuild(session=locked)
    audit_record(
        action="compaction.reverted",
        project=Project.objects.get(pk=locked.project_id),
        actor=actor,
        target=locked.external_id,
        detail={"compaction": number},
    )
    compaction_event_emit(compaction=compaction, event=WebhookEvent.FINISHED)
    derived_refresh_on_commit(session=locked)
    return compaction


def snapshot_rebuild(*, session: AgentSession) -> None:
    """Rebuild the prompt snapshot from all stored messages and edits. The session is locked.

    This restores the messages and edits that a reverted compaction covered.
    """
    rows = Edit.objects.filter(session=session, compaction__state=Compaction.State.DONE)
    edits = _in_force([(row.pk, edit_value(row)) for row in rows.order_by("compaction__number", "ordinal")])
    loaded = view_load(session, edits=edits)
    shown = TokenBreakdown.of_view(loaded.view)
    snapshot_write(session=session, view=loaded.view, raw=loaded.raw, edits=edits, shown=shown)
