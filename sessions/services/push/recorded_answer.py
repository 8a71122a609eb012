"""Answer a push of which every message is stored already."""

from __future__ import annotations

from django.db import connection
from msgspec.structs import replace

from sessions.models import AgentSession, Turn
from sessions.services.calls.complete import call_complete
from sessions.services.ingestion import NewPreamble
from sessions.services.push.answer import answer_json
from sessions.services.push.compute import push_cost, turn_compute
from sessions.services.push.parameters import preamble_parameters
from sessions.services.push.recorded import Recorded
from sessions.services.push.statements import WRITE_PREAMBLE
from sessions.services.push.values import NewTurn, Push, SessionState
from sessions.store.postgres import execute, raw_connection


def recorded_answer(state: SessionState, push: Push, recorded: Recorded) -> bytes:
    """Return the response to the push, and store what only the push knows. The session is locked.

    That is the usage of the call, the system prompt and tools, and the key with which it may be retried.
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
        _preamble_store(turn, preamble)
    answer = answer_json(turn, push, shown=turn.shown)
    if push.idempotency_key is not None:
        Turn.objects.filter(session=state.id, index=turn.index).update(
            idempotency_key=push.idempotency_key, body_hash=push.body_hash, answer=answer
        )
    return answer


def _preamble_store(turn: NewTurn, preamble: NewPreamble) -> None:
    """Store the system prompt and tools, which the other source does not know."""
    with connection.wrap_database_errors:
        execute(raw_connection(), WRITE_PREAMBLE, preamble_parameters(turn, preamble))
    AgentSession.objects.filter(pk=turn.session.id).update(
        preamble_version=turn.preamble_version,
        preamble_hash=preamble.hash,
        context_components=turn.context.tokens,
        shown_components=turn.shown.tokens,
    )
    Turn.objects.filter(session=turn.session.id, index__gte=turn.index).update(
        preamble_version=turn.preamble_version
    )
