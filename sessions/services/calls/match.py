"""Recognize calls: find the turn of a call that another source has already recorded."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import F, Q, QuerySet

from compaction.messages import USAGE_COUNTS, Usage
from sessions.models import AgentSession, Turn, TurnSource
from telemetry.values import COMPOSED

#: Maximum difference of the times at which two sources report the same call without an id.
SAME_CALL = timedelta(minutes=10)

#: Maximum depth of sub-agents.
_DEPTH = 4


def family_of(session: AgentSession) -> list[UUID]:
    """Return the ids of a session, the session that started it, and all sub-agents of both."""
    found = {session.pk} | ({session.parent_id} if session.parent_id else set())
    newest = found
    for _ in range(_DEPTH):
        rows = AgentSession.objects.filter(parent_id__in=newest).exclude(pk__in=found)
        newest = set(rows.values_list("pk", flat=True))
        if not newest:
            break
        found |= newest
    return list(found)


def turns_by_id(*, project_id: UUID, calls: Iterable[CallIdentity]) -> QuerySet[Turn]:
    """Return the turns of the project that have the request id or response id of one of these calls."""
    requests = [call.request_id for call in calls if call.request_id]
    responses = [call.response_id for call in calls if call.response_id]
    matches = Q(request_id__in=requests) | Q(response_id__in=responses)
    return Turn.objects.filter(matches, session__project_id=project_id, billed=True)


def turn_with_usage(
    call: CallIdentity, *, family: Collection[UUID], with_messages: bool
) -> tuple[UUID, int] | None:
    """Return the session and index of the turn with the usage of a call and about its time, or None.

    With `with_messages`, considers only turns that no telemetry was matched with yet, else only turns that
    telemetry reported and that have no messages. A log may lack the exact output tokens. A turn with the id
    of the provider is only considered for a call that telemetry reports without one.
    """
    usage = call.usage
    if usage is None or not usage.input_tokens:
        return None
    # A call that only a log has reported is stored under its response id if the log has no request id.
    unmatched = Q(request_id__isnull=True) | Q(source=TurnSource.LOG, request_id=F("response_id"))
    if COMPOSED in call.request_id:
        unmatched |= ~Q(request_id__contains=COMPOSED)
    same_output = Q(output_tokens=usage.output_tokens) | Q(output_reported__isnull=False)
    rows = Turn.objects.filter(
        same_output,
        unmatched if with_messages else Q(request_id__isnull=False),
        session_id__in=family,
        billed=True,
        uncached_tokens=usage.uncached_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        at__range=(call.at - SAME_CALL, call.at + SAME_CALL),
    )
    if not with_messages:
        rows = rows.filter(message_count=0).exclude(source=TurnSource.GATEWAY)
    found = list(rows.order_by("at").values_list("session_id", "index", "at"))
    if not found:
        return None
    session_id, index, _ = min(found, key=lambda row: abs(row[2] - call.at))
    return session_id, index


def turn_pushed(call: CallIdentity, *, session: AgentSession) -> Turn | None:
    """Return the pushed turn with the usage of a call, about its time, and give it the ids of the call.

    Turns that already have a response id are not considered. The caller has locked the session.
    """
    if not session.push_position:
        return None
    rows = _turns_with_usage(call, session_id=session.pk).filter(source=TurnSource.PUSH, response_id=None)
    turn = min(rows, key=lambda row: abs(row.at - call.at), default=None)
    if turn is not None:
        ids = {"response_id": call.response_id or None, "request_id": call.request_id or turn.request_id}
        Turn.objects.filter(session=session, index=turn.index).update(**ids)
    return turn


def turns_recorded(call: CallIdentity, *, session_id: UUID) -> list[Turn]:
    """Return the turns with the usage of a call, about its time, that a source other than pushes stored."""
    rows = _turns_with_usage(call, session_id=session_id).exclude(source=TurnSource.PUSH)
    return sorted(rows, key=lambda row: abs(row.at - call.at))


def _turns_with_usage(call: CallIdentity, *, session_id: UUID) -> QuerySet[Turn]:
    if call.usage is None or not call.usage.input_tokens:
        return Turn.objects.none()
    return Turn.objects.filter(
        session=session_id,
        message_count__gt=0,
        billed=True,
        at__range=(call.at - SAME_CALL, call.at + SAME_CALL),
        **{name: getattr(call.usage, name) for name in USAGE_COUNTS},
    )


def is_near(turn: Turn, call: CallIdentity) -> bool:
    """Return whether a turn was stored about the time of a call."""
    return abs(turn.at - call.at) <= SAME_CALL


def is_usage_of(turn: Turn, usage: Usage | None) -> bool:
    """Return whether a stored turn has exactly this usage."""
    return usage is not None and all(getattr(turn, name) == getattr(usage, name) for name in USAGE_COUNTS)


def has_usage(turn: Turn, call: CallIdentity) -> bool:
    """Return whether a stored turn has the input tokens of a call, about its time."""
    usage = call.usage
    if usage is None or not is_near(turn, call):
        return False
    inputs = (turn.uncached_tokens, turn.cache_read_tokens, turn.cache_write_tokens)
    return inputs == (usage.uncached_tokens, usage.cache_read_tokens, usage.cache_write_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallIdentity:
    """A call, as one source reports it.

    `request_id` and `response_id` are unique in a project and empty if they are unknown. Otherwise a call is
    recognized by its usage and time within its session and the sessions of its sub-agents.
    """

    at: datetime
    usage: Usage | None = None
    request_id: str = ""
    response_id: str = ""
