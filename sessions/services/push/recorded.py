"""Recognize and answer pushes that the gateway, telemetry or an imported log has recorded already.

A call is found by its ids, else by its place: clients push messages in the order of the transcript, so a push
begins where the last one ended (`AgentSession.push_position`); else by its usage and time. The messages must
be equal too. A push may divide the transcript into turns differently from the other source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from compaction.identity import canonical
from compaction.messages import Message, Role
from sessions.models import AgentSession, Turn, TurnSource
from sessions.selectors.convert import usage_of
from sessions.selectors.transcripts.rows import StoredMessage, messages_load
from sessions.services.calls.match import (
    CallIdentity,
    family_of,
    is_near,
    is_usage_of,
    turns_by_id,
    turns_recorded,
)
from sessions.services.calls.remove import call_take
from sessions.services.calls.store import call_complete
from sessions.services.ingestion import IngestedMessage, NewPreamble
from sessions.services.push.answer import answer_json
from sessions.services.push.compute import push_cost, turn_compute
from sessions.services.push.preambles import preamble_store
from sessions.services.push.values import NewTurn, Push, SessionState
from sessions.store import bodies


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The first `count` messages of a push, which are stored from `position` on.

    `call` is the stored turn of the push's model call, or None if the call is not stored.
    """

    position: int
    count: int
    call: Turn | None

    @property
    def end(self) -> int:
        return self.position + self.count

    def rest_of(self, push: Push) -> Push:
        """Return the push with the messages that are not stored, and without the usage of a stored call."""
        rest = replace(push, messages=push.messages[self.count :], repeated=self.count)
        if self.call is None:
            return rest
        return replace(rest, usage=None, request_id=None, response_id=None, provider=None)


def recorded_find(state: SessionState, push: Push) -> Recorded | None:
    """Return the stored part of a push, or None if nothing of it is stored. The session is locked."""
    call = push.identity()
    if call.request_id or call.response_id:
        rows = turns_by_id(project_id=state.project_id, calls=[call]).filter(message_count__gt=0)
        if (found := rows.first()) is not None:
            return _with_id(state, push, found)
    if push.is_placed or not state.has_recorded:
        return None
    return _at_place(state, push, call) or _with_usage(state, push, call)


def _with_id(state: SessionState, push: Push, call: Turn) -> Recorded:
    """Return the stored part of a push whose call has this turn.

    If the messages differ, the pushed response corresponds to that of the other source.
    """
    nothing = Recorded(position=state.message_count, count=0, call=call)
    if push.is_placed or call.session_id != state.id:
        return nothing
    if (found := _around(state, push, call)) is not None:
        return found
    pushed = _first_answer([message.value for message in push.messages])
    rows = messages_load(state.id, [(call.first_position, call.first_position + call.message_count)])
    stored = _first_answer([row.value(state.format) for row in rows])
    if pushed is None or stored is None or call.source == TurnSource.PUSH:
        return nothing
    position = call.first_position + stored - pushed
    count = min(len(push.messages), state.message_count - position)
    return Recorded(position=position, count=count, call=call) if position >= 0 else nothing


def _at_place(state: SessionState, push: Push, call: CallIdentity) -> Recorded | None:
    """Return the stored part of a push that continues the last one.

    The first push of a session may also continue a recorded conversation that began with the same words, so
    its usage or time must be that of the stored messages.
    """
    start = state.push_position
    rows = messages_load(state.id, [(start, start + len(push.messages))])
    if not _begins(rows, push.messages):
        return None
    answers = [row.turn for row in rows if _is_answer(row.value(state.format))]
    is_whole = len(rows) == len(push.messages)
    turn = Turn.objects.get(session=state.id, index=answers[-1] if answers else rows[-1].turn)
    if not start and not is_near(turn, call) and not is_usage_of(turn, call.usage):
        return None
    return Recorded(position=start, count=len(rows), call=turn if answers or is_whole else None)


def _with_usage(state: SessionState, push: Push, call: CallIdentity) -> Recorded | None:
    """Return the stored part of a push whose call another source has recorded about now."""
    for turn in turns_recorded(call, session_id=state.id):
        if (found := _around(state, push, turn)) is not None:
            return found
    return None


def _around(state: SessionState, push: Push, call: Turn) -> Recorded | None:
    """Return the stored part of a push that overlaps with the messages of a turn, or None."""
    first, end = call.first_position, call.first_position + call.message_count
    rows = messages_load(state.id, [(max(first - len(push.messages) + 1, 0), end + len(push.messages))])
    for index, row in enumerate(rows):
        count = min(len(push.messages), len(rows) - index)
        if row.position < end and _begins(rows[index : index + count], push.messages):
            return Recorded(position=row.position, count=count, call=call)
    return None


def _begins(rows: Sequence[StoredMessage], messages: Sequence[IngestedMessage]) -> bool:
    """Return whether the pushed messages begin with the stored ones."""
    return bool(rows) and all(
        row.data == message.data or _content(row.data) == _content(message.data)
        for row, message in zip(rows, messages, strict=False)
    )


def _content(data: bytes) -> bytes:
    return canonical(bodies.json_value(data))


def _first_answer(messages: Sequence[Message]) -> int | None:
    return next((index for index, message in enumerate(messages) if _is_answer(message)), None)


def _is_answer(message: Message) -> bool:
    return message.role is Role.ASSISTANT


def recorded_answer(state: SessionState, push: Push, recorded: Recorded) -> bytes:
    """Return the response to the push, and store what only the push contains. The session is locked.

    This can be the usage of the call, the system prompt and tools, and the idempotency key.
    """
    stored = recorded.call
    assert stored is not None  # the push is stored as a whole
    preamble = push.preamble if state.preamble_hash is None else None
    turn = turn_compute(state, replace(push, messages=(), usage=None, preamble=preamble))
    turn = replace(turn, index=stored.index, first_position=recorded.position)
    if push.usage is not None and stored.prompt_reported is None:
        cost = push_cost(turn.model, push)
        call_complete(stored, usage=push.usage, cost_microusd=cost, model=push.model)
    turn = replace(turn, cost_microusd=stored.cost_microusd)
    position = max(state.push_position, recorded.end)
    AgentSession.objects.filter(pk=state.id).update(push_position=position)
    if preamble is not None and turn.changes_preamble:
        _preamble_add(turn, preamble)
    answer = answer_json(turn, push, shown=turn.shown)
    if push.idempotency_key is not None:
        Turn.objects.filter(session=state.id, index=turn.index).update(
            idempotency_key=push.idempotency_key, body_hash=push.body_hash, answer=answer
        )
    return answer


def _preamble_add(turn: NewTurn, preamble: NewPreamble) -> None:
    """Store the system prompt and tools, which the other source did not report."""
    preamble_store(turn, preamble)
    AgentSession.objects.filter(pk=turn.session.id).update(
        preamble_version=turn.preamble_version,
        preamble_hash=preamble.hash,
        context_components=turn.context.tokens,
        shown_components=turn.shown.tokens,
    )
    Turn.objects.filter(session=turn.session.id, index__gte=turn.index).update(
        preamble_version=turn.preamble_version
    )


def report_take(state: SessionState, push: Push) -> Push | None:
    """Remove the turn without messages that telemetry reported for the pushed call, and return the push with
    what only telemetry reported.

    Returns None if there is no such turn. The caller has locked the session.
    """
    family = family_of(AgentSession.objects.get(pk=state.id))
    taken = call_take(push.identity(), project_id=state.project_id, family=family)
    if taken is None:
        return None
    return replace(with_usage_of(push, taken), request_id=push.request_id or taken.request_id)


def with_usage_of(push: Push, reported: Turn) -> Push:
    """Return the push with the usage that telemetry reported for its call, unless it has its own."""
    if push.usage is not None:
        return push
    return replace(push, usage=usage_of(reported), model=push.model or reported.model)
