"""Store a call whose messages are all stored: another source was first, or the client repeated the call."""

from __future__ import annotations

from uuid import UUID

from msgspec.structs import replace

from compaction.messages import Role
from sessions.models import AgentSession, Message, Turn, TurnSource
from sessions.services.calls.match import CallIdentity, is_usage_of, turns_by_id
from sessions.services.calls.store import ReportedCall, call_append, call_complete
from sessions.services.push.compute import push_cost
from sessions.services.push.values import Push
from sessions.services.reconcile.matching import Matched
from sessions.services.reconcile.reading import Reading
from sessions.services.reconcile.stored import positions
from sessions.services.reconcile.values import Reconciled, Request, Sent, Status


def is_known(matched: Matched, reading: Reading, sent: Sent) -> bool:
    """Return whether the history and the model's response to it are stored, perhaps with further messages."""
    return bool(sent.answers) and matched.comparison.common == reading.count


def known_call_store(
    request: Request, sent: Sent, reading: Reading, matched: Matched, call: CallIdentity
) -> Reconciled:
    """Store the ids and the usage of the call, unless they are stored. The root session is locked."""
    session = AgentSession.objects.select_for_update().get(pk=matched.session.pk)
    at = positions(matched.history, session.message_count)[reading.count - 1]
    index = Message.objects.values_list("turn_index", flat=True).get(session=session, position=at)
    turn = Turn.objects.get(session=session, index=index)
    if not turns_by_id(project_id=session.project_id, calls=[call]).exists():
        if turn.response_id is None or turn.prompt_reported is None:
            _complete(turn, sent.push, call)
        elif sent.push.usage is not None:
            index = session.turn_count
            call_append(session, _repeated(request, sent.push, call))
    return Reconciled(status=Status.UNCHANGED, session_id=session.pk, first=reading.count, turn=index)


def reports_stored_answer(push: Push) -> bool:
    """Return whether a client sends the usage of its last response without any new response."""
    is_new = any(message.value.role is Role.ASSISTANT for message in push.messages)
    return push.source is TurnSource.PUSH and push.usage is not None and not is_new


def without_stored_usage(push: Push, matched: Matched) -> Push:
    """Return the new part of a history without the usage of the last response, if that is stored.

    Adds the usage to the turn of the response if it has none.
    """
    if push.usage is None or not reports_stored_answer(push):
        return push
    session = matched.session
    rows = Message.objects.filter(session=session, role=Role.ASSISTANT.value).order_by("-position")
    index = rows.values_list("turn_index", flat=True).first()
    turn = Turn.objects.get(session=session, index=index) if index is not None else None
    if turn is None or not turn.billed:
        return push
    if turn.prompt_reported is None:
        model = push.model or turn.model or session.model
        call_complete(turn, usage=push.usage, cost_microusd=push_cost(model, push), model=model)
        return replace(push, usage=None)
    return replace(push, usage=None) if is_usage_of(turn, push.usage) else push


def without_reported_usage(push: Push, call: CallIdentity, *, project_id: UUID) -> Push:
    """Return the push without its usage if telemetry has already reported it.

    Some instrumentations report the messages of a request, but not the response.
    """
    if push.usage is None or push.source is TurnSource.TELEMETRY:
        return push
    turns = turns_by_id(project_id=project_id, calls=[call]).filter(source=TurnSource.TELEMETRY)
    if not turns.filter(prompt_reported__isnull=False).exists():
        return push
    return replace(push, usage=None, request_id=None, response_id=None)


def _complete(turn: Turn, push: Push, call: CallIdentity) -> None:
    turn.response_id = turn.response_id or call.response_id or None
    turn.request_id = turn.request_id or call.request_id or None
    turn.save(update_fields=["response_id", "request_id"])
    if push.usage is not None and turn.prompt_reported is None:
        model = push.model or turn.model
        call_complete(turn, usage=push.usage, cost_microusd=push_cost(model, push), model=model)


def _repeated(request: Request, push: Push, call: CallIdentity) -> ReportedCall:
    """Return the call without messages: the client repeated a request and got the same response."""
    return ReportedCall(
        at=call.at,
        request_id=call.request_id or call.response_id or request.idempotency_key or "",
        response_id=call.response_id or None,
        model=push.model,
        usage=push.usage,
        cost_microusd=push_cost(push.model, push),
        first_token_ms=push.latency.first_token_ms,
        duration_ms=push.latency.duration_ms,
        source=push.source,
    )
