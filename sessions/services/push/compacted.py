"""Apply a prepared compaction with the push that triggers it, in one statement (`WRITE_COMPACTED`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from django.db import InterfaceError, OperationalError
from django.dispatch import Signal
from django.utils import timezone
from msgspec.structs import replace
from uuid_utils.compat import uuid7

from compaction.continuation import Continuation
from compaction.messages import Message
from compaction.planning.preparation import has_answer, record_extended
from compaction.triggers import Trigger, hard
from sessions.models import AgentSession, Compaction, WebhookEvent
from sessions.selectors.memory.revisions import memory_latest
from sessions.selectors.transcripts.rows import messages_load
from sessions.services.commits import after_commit
from sessions.services.compactions.lifecycle import newest_number
from sessions.services.compactions.preparation import (
    PreparedCompaction,
    compaction_prepare,
    preparations,
)
from sessions.services.push.triggers import trigger_possible
from sessions.services.push.values import NewTurn, Push
from sessions.services.webhooks.deliveries import compaction_event_emit
from sessions.store import bodies

log = logging.getLogger(__name__)

#: Sent after the commit of a prepared compaction, whose row is stored without its model.
compaction_stored = Signal()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedTurn:
    """A turn with the compaction that it triggers.

    `turn` has the breakdown and the continuation state of the prompt after the compaction. `parameters` are
    those of `WRITE_COMPACTED` in addition to those of `WRITE`.
    """

    turn: NewTurn
    compaction: Compaction
    parameters: Mapping[str, Any]


def plan_boundary(turn: NewTurn, push: Push, trigger: Trigger | None) -> int | None:
    """Return the plan boundary if the turn triggers a hard compaction that may be planned up to it."""
    is_hard = trigger is hard.TRIGGER and not push.has_provider_compaction
    return turn.plan_turn if is_hard else None


def turn_compacted_ready(turn: NewTurn, boundary: int) -> CompactedTurn | None:
    """Return the turn with a compaction that is ready in this process. Reads nothing from the database."""
    prepared = preparations.ready(turn.session.id, boundary)
    if prepared is None or prepared.omitted_count != turn.session.omitted_count:
        return None
    if prepared.before[1] != prepared.after[1]:
        return None  # the continuation state depends on the messages after the boundary
    if not has_answer(turn.values):
        return None  # the last answer is in an earlier turn
    return _compacted(turn, prepared, turn.values, turn.continuation, reports=False)


def turn_compacted(turn: NewTurn, push: Push) -> CompactedTurn | None:
    """Return the turn with the compaction up to the boundary, or None if the whole prompt must be planned.

    The caller has locked the session and must report the compaction to webhooks.
    """
    boundary = plan_boundary(turn, push, trigger_possible(turn))
    if boundary is None:
        return None
    session = AgentSession.objects.get(pk=turn.session.id)
    try:
        prepared = _ready(session, boundary) or compaction_prepare(session=session, turn=boundary)
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("a compaction of session %s could not be planned", session.pk)
        return None
    if prepared is None or prepared.has_edits_of(_omitted_since(prepared, session)):
        return None
    rows = messages_load(session.pk, [(prepared.end, turn.first_position)])
    following = [row.value(turn.format) for row in rows if row.omitted_from is None]
    following += turn.values
    continuation = prepared.after[1].after(following, turn.format)
    newest = turn.values if has_answer(turn.values) else following
    return _compacted(turn, prepared, newest, continuation, reports=True)


def _ready(session: AgentSession, turn: int) -> PreparedCompaction | None:
    """Return the compaction that is ready in this process, if the working memory is still the same."""
    prepared = preparations.ready(session.pk, turn)
    if prepared is None:
        return None
    memory = memory_latest(session_id=session.pk)
    is_same = (memory.number if memory is not None else None) == prepared.memory
    return prepared if is_same and prepared.number == newest_number(session) + 1 else None


def _omitted_since(prepared: PreparedCompaction, session: AgentSession) -> Sequence[int]:
    """Return the positions of the planned messages that the client has omitted since the boundary."""
    if prepared.omitted_count == session.omitted_count:
        return ()
    omitted = session.messages.filter(position__lt=prepared.end, omitted_from__gte=prepared.end - 1)
    return list(omitted.values_list("position", flat=True))


def _compacted(
    turn: NewTurn,
    prepared: PreparedCompaction,
    newest: Sequence[Message],
    continuation: Continuation,
    *,
    reports: bool,
) -> CompactedTurn | None:
    message_count = turn.first_position + len(turn.values)
    if not prepared.applies(
        shown=turn.shown, message_count=message_count, calibration=turn.calibration, budget=turn.budget
    ):
        return None
    shown, now = prepared.shown(turn.shown), timezone.now()
    record = record_extended(
        prepared.record,
        tokens=turn.shown.total - prepared.before[0].total,
        newest=newest,
        policy=prepared.policy,
        calibration=turn.calibration,
        room=turn.calibration.room(turn.budget),
    )
    components = {"before": turn.shown.tokens, "after": shown.tokens}
    compaction = Compaction(
        pk=uuid7(),
        session_id=turn.session.id,
        number=prepared.number,
        state=Compaction.State.DONE,
        trigger=hard.TRIGGER.name,
        turn_index=turn.index,
        first_turn=turn.index,
        snapshot_position=message_count,
        policy=prepared.policy.to_json(),
        tokens_before=record.tokens_before,
        tokens_after=record.tokens_after,
        cost_microusd=0,
        created_at=now,
        finished_at=now,
    )
    compaction.record = {**record.to_json(), "components": components}
    parameters = {
        **prepared.parameters,
        "compaction": compaction.pk,
        "number": compaction.number,
        "message_count": message_count,
        "policy": bodies.pack(bodies.json_bytes(compaction.policy)),
        "facts": compaction.facts,
        "details": bodies.pack(bodies.json_bytes(compaction.details)),
        "size_before": compaction.tokens_before,
        "size_after": compaction.tokens_after,
        "snapshot_end": prepared.end,
        "fired_tokens": turn.calibration.provider(record.tokens_after),
        "memory": prepared.memory,
        "reports": reports,
    }
    turn = replace(turn, shown=shown, continuation=continuation, plan_turn=None)
    return CompactedTurn(turn=turn, compaction=compaction, parameters=parameters)


def compaction_count(compaction: Compaction) -> None:
    """Count a stored compaction for the metrics."""
    compaction_stored.send(sender=Compaction, instance=compaction)


def compaction_report(compaction: Compaction) -> None:
    """Report a compaction that a push applied to webhooks and metrics, in the transaction of the push."""
    started = copy(compaction)
    started.state, started.record, started.tokens_after = Compaction.State.RUNNING, {}, None
    started.finished_at = None
    compaction_event_emit(compaction=started, event=WebhookEvent.STARTED)
    compaction_event_emit(compaction=compaction, event=WebhookEvent.FINISHED)
    after_commit(compaction_count, compaction)
