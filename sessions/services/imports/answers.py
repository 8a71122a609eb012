"""Match the calls of a log with pushed turns by their answers, for agents that push no usage."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db.models import Max

from compaction.identity import canonical
from compaction.messages import Role
from sessions.models import AgentSession, Turn, TurnSource
from sessions.selectors.stored_rows import messages_load, spans_of
from sessions.services.calls.complete import call_complete
from sessions.services.imports.prepare import PreparedTurn
from sessions.store import bodies


def turns_with_answers(
    session: AgentSession, turns: Sequence[PreparedTurn], known: Collection[Turn]
) -> list[tuple[PreparedTurn, Turn]]:
    """Return the calls whose answer ends a pushed turn, each with this turn, except turns that are `known`.

    Earlier answers in a turn are those of other calls.
    """
    found = []
    matched = {(turn.session_id, turn.index) for turn in known}
    pushed = _pushed_answers(session) if turns else []
    pushed = [(answer, turn) for answer, turn in pushed if (turn.session_id, turn.index) not in matched]
    for turn in turns:
        answer = _answer(turn)
        at = next((index for index, (each, _) in enumerate(pushed) if each == answer), None)
        if answer is not None and at is not None:
            found.append((turn, pushed.pop(at)[1]))
    return found


def answer_complete(stored: Turn, turn: PreparedTurn) -> bool:
    """Store the usage and the ids of a call in its pushed turn. Return whether the turn had no usage."""
    if stored.prompt_reported is not None or turn.usage is None:
        return False
    stored.response_id = stored.response_id or turn.response_id
    stored.request_id = stored.request_id or turn.request_id
    stored.save(update_fields=["response_id", "request_id"])
    call_complete(stored, usage=turn.usage, cost_microusd=turn.cost_microusd, model=turn.model)
    return True


def _pushed_answers(session: AgentSession) -> list[tuple[bytes, Turn]]:
    """Return the last answer in each pushed turn, without its formatting, and the turn."""
    pushed = {turn.index: turn for turn in session.turns.filter(source=TurnSource.PUSH)}
    answers = session.messages.filter(role=Role.ASSISTANT.value, turn_index__in=list(pushed))
    last = answers.values("turn_index").annotate(last=Max("position")).values_list("last", flat=True)
    rows = messages_load(session.pk, spans_of(sorted(last)))
    return [(canonical(bodies.json_value(row.data)), pushed[row.turn]) for row in rows]


def _answer(turn: PreparedTurn) -> bytes | None:
    """Return the last answer of a call, without its formatting, or None."""
    answers = [message for message in turn.messages if message.value.role is Role.ASSISTANT]
    return canonical(bodies.json_value(answers[-1].data)) if answers else None
