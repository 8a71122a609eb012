"""Combine the pages of an export that are imported separately, in any order.

The requests in a page contain the messages of all earlier calls, but usage only for the calls in the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db.models import Max

from compaction.messages import Role
from sessions.models import AgentSession, Turn
from sessions.selectors.convert import usage_of
from sessions.services.calls.store import COUNTERS, call_complete
from sessions.services.imports.prepare import PreparedTurn
from sessions.services.imports.rows import billed_elsewhere


@dataclass(frozen=True, slots=True)
class MessageKey:
    """Identifies a message when a log is compared with the stored session."""

    turn: int
    source_id: str | None
    sha256: bytes


def pages_combine(
    session: AgentSession, turns: Sequence[PreparedTurn], stored: Sequence[MessageKey]
) -> tuple[Sequence[PreparedTurn], bool]:
    """Return the turns of the log with the usage of the same stored turns.

    Stored turns without usage get that of the log; the second value is whether there were any.
    """
    missing = [index for index, turn in enumerate(turns) if turn.usage is None and _is_answered(turn)]
    calls = session.turns.filter(index__lt=len(turns), message_count__gt=0)
    found = calls.filter(index__in=missing, prompt_reported__isnull=False) | calls.filter(
        prompt_reported=None
    )
    rows = {row.index: row for row in found.order_by("index")} if stored else {}
    if not rows:
        return turns, False
    keys, elsewhere = _by_turn(stored), billed_elsewhere(session, turns)
    combined, is_completed = list(turns), False
    for index, row in rows.items():
        turn = turns[index]
        if keys.get(index) != [(message.source_id, message.sha256) for message in turn.messages]:
            continue
        if row.prompt_reported is not None:
            combined[index] = _with_usage(turn, row)
        elif turn.usage is not None and turn.response_id not in elsewhere:
            _complete(row, turn)
            is_completed = True
    if is_completed:
        _peak_correct(session)
        session.refresh_from_db(fields=[*COUNTERS, "started_at"])
    return combined, is_completed


def has_other_calls(session: AgentSession, turns: Sequence[PreparedTurn]) -> bool:
    """Return whether the log and the session have calls with ids, none of which is in both."""
    found = {turn.response_id for turn in turns if turn.response_id}
    stored = set(session.turns.exclude(response_id=None).values_list("response_id", flat=True))
    return bool(found and stored) and found.isdisjoint(stored)


def _peak_correct(session: AgentSession) -> None:
    """Set the largest prompt to the largest one that was reported, if all were. It may be an estimate."""
    if not session.turns.filter(prompt_reported=None).exists():
        peak = session.turns.aggregate(peak=Max("prompt_reported"))["peak"]
        AgentSession.objects.filter(pk=session.pk).update(peak_prompt_tokens=peak)


def _is_answered(turn: PreparedTurn) -> bool:
    return any(message.value.role is Role.ASSISTANT for message in turn.messages)


def _by_turn(stored: Sequence[MessageKey]) -> dict[int, list[tuple[str | None, bytes]]]:
    found: dict[int, list[tuple[str | None, bytes]]] = {}
    for key in stored:
        found.setdefault(key.turn, []).append((key.source_id, key.sha256))
    return found


def _with_usage(turn: PreparedTurn, row: Turn) -> PreparedTurn:
    return replace(
        turn,
        usage=usage_of(row),
        output_reported=row.output_reported,
        cost_microusd=row.cost_microusd,
        model=row.model,
        response_id=row.response_id,
        request_id=row.request_id,
        at=row.at,
        first_token_ms=row.first_token_ms,
        duration_ms=row.duration_ms,
    )


def _complete(row: Turn, turn: PreparedTurn) -> None:
    """Store the usage, ids and times of a call in its turn."""
    fields = ("response_id", "request_id", "at", "output_reported", "first_token_ms", "duration_ms")
    for name in fields:
        setattr(row, name, getattr(turn, name) or getattr(row, name))
    row.save(update_fields=fields)
    assert turn.usage is not None
    call_complete(row, usage=turn.usage, cost_microusd=turn.cost_microusd, model=turn.model)
    AgentSession.objects.filter(pk=row.session_id, started_at__gt=row.at).update(started_at=row.at)
