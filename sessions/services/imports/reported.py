"""Join a log with the calls that telemetry reported before, so that each call is counted once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from compaction.messages import USAGE_COUNTS
from sessions.models import AgentSession, Turn, TurnSource
from sessions.selectors.convert import usage_of
from sessions.services.calls.match import SAME_CALL, CallIdentity, family_of, turns_by_id
from sessions.services.calls.remove import call_take
from sessions.services.calls.store import turn_uncount
from sessions.services.imports.prepare import PreparedTurn
from sessions.services.spending.rollups import rollups_invalidate


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The turns of a log, joined with reported calls.

    `turns` are those of the log, with the reported calls between the stored ones. `remaining` are reported
    calls that the log does not contain; they become the last turns. Both replace the `reported` turns, which
    are the last ones from index `end` on.
    """

    turns: Sequence[PreparedTurn]
    end: int
    remaining: Sequence[PreparedTurn] = ()
    reported: Sequence[Turn] = ()


def calls_join(session: AgentSession, turns: Sequence[PreparedTurn]) -> Joined:
    """Return the turns of a log with the calls that telemetry reported for the session."""
    turns = calls_take(session, turns)
    stored = list(Turn.objects.filter(session=session).order_by("index"))
    if not any(_is_reported(turn) for turn in stored):
        return Joined(turns=_with_reports(turns, stored), end=session.turn_count)
    end = max((turn.index + 1 for turn in stored if turn.message_count), default=0)
    reported = stored[end:]
    calls = [_prepared(turn) for turn in reported if turn.prompt_reported is not None]
    turns, remaining = _matched(_with_reports(turns, stored), calls)
    if not end:
        merged = sorted([*_timed(turns), *_timed(remaining)], key=lambda pair: pair[0])
        return Joined(turns=[turn for _, turn in merged], end=0, reported=reported)
    log = iter(turns)
    before = [next(log, None) if turn.message_count else _prepared(turn) for turn in stored[:end]]
    return Joined(turns=[*filter(None, before), *log], end=end, remaining=remaining, reported=reported)


def reported_remove(session: AgentSession, joined: Joined) -> None:
    """Remove the reported turns at the end of the session, and subtract them from its counters."""
    Turn.objects.filter(session=session, index__gte=joined.end).delete()
    for turn in joined.reported:
        turn_uncount(session, turn)
    session.turn_count = joined.end
    rollups_invalidate(session.pk)


def _is_reported(turn: Turn) -> bool:
    return not turn.message_count and turn.request_id is not None


def calls_take(session: AgentSession, turns: Sequence[PreparedTurn]) -> list[PreparedTurn]:
    """Remove calls of this log that telemetry reported for another session, such as that of a sub-agent.

    Returns the turns with what telemetry reported about them.
    """
    reported = _reported_elsewhere(session, turns)
    found, left = _matched(turns, reported)
    for call in reported:
        if all(call is not each for each in left):
            identity = CallIdentity(at=call.at or session.started_at, request_id=call.request_id or "")
            call_take(identity, project_id=session.project_id, family=())
    return found


def _reported_elsewhere(session: AgentSession, turns: Sequence[PreparedTurn]) -> list[PreparedTurn]:
    """Return the calls of other sessions that may be in this log: by id, or if it lacks ids, by session."""
    calls = [
        CallIdentity(at=turn.at or session.started_at, request_id=turn.request_id)
        for turn in turns
        if turn.request_id
    ]
    rows = list(turns_by_id(project_id=session.project_id, calls=calls)) if calls else []
    if len(calls) < len(turns):
        family = Turn.objects.filter(session__in=family_of(session), source=TurnSource.TELEMETRY)
        rows += family.filter(message_count=0, request_id__isnull=False).exclude(session=session)
    known = {(row.session_id, row.index): row for row in rows if _is_reported(row)}
    return [_prepared(row) for row in known.values() if row.session_id != session.pk]


def _prepared(turn: Turn) -> PreparedTurn:
    return PreparedTurn(
        messages=(),
        model=turn.model,
        usage=usage_of(turn),
        cost_microusd=turn.cost_microusd,
        response_id=turn.response_id,
        request_id=turn.request_id,
        at=turn.at,
        first_token_ms=turn.first_token_ms,
        duration_ms=turn.duration_ms,
    )


def _matched(
    turns: Sequence[PreparedTurn], calls: Sequence[PreparedTurn]
) -> tuple[list[PreparedTurn], list[PreparedTurn]]:
    """Return the log's turns with the facts of the calls that are the same, and the other calls."""
    found, left = list(turns), list(calls)
    for same in (_same_id, _same_usage):
        for index, turn in enumerate(found):
            call = next((call for call in left if same(turn, call)), None)
            if call is not None:
                found[index] = _enriched(turn, call)
                left.remove(call)
    return found, left


def _same_id(turn: PreparedTurn, call: PreparedTurn) -> bool:
    return turn.request_id is not None and turn.request_id == call.request_id


def _same_usage(turn: PreparedTurn, call: PreparedTurn) -> bool:
    if turn.request_id is not None or turn.usage is None or call.usage is None:
        return False
    inputs = USAGE_COUNTS[:3]
    same = all(getattr(turn.usage, name) == getattr(call.usage, name) for name in inputs)
    return same and _near(turn.at, call.at)


def _near(first: datetime | None, second: datetime | None) -> bool:
    return first is not None and second is not None and abs(first - second) <= SAME_CALL


def _enriched(turn: PreparedTurn, call: PreparedTurn) -> PreparedTurn:
    """Return the turn with the id and latency of the call, and the output and cost that the log lacks."""
    usage, reported, cost = turn.usage, turn.output_reported, turn.cost_microusd
    if reported is not None and call.usage is not None:
        usage, reported = call.usage, None
        cost = cost if call.cost_microusd is None else call.cost_microusd
    return replace(
        turn,
        usage=usage,
        output_reported=reported,
        cost_microusd=cost,
        request_id=turn.request_id or call.request_id,
        first_token_ms=call.first_token_ms,
        duration_ms=call.duration_ms,
    )


def _with_reports(turns: Sequence[PreparedTurn], stored: Sequence[Turn]) -> list[PreparedTurn]:
    """Return the turns with the facts that an earlier import has taken from telemetry."""
    known = {turn.response_id: turn for turn in stored if turn.response_id and turn.request_id}
    found = []
    for turn in turns:
        before = known.get(turn.response_id) if turn.response_id and turn.usage is not None else None
        if before is not None and _has_report(before, turn):
            turn = _enriched(turn, _prepared(before))
        found.append(turn)
    return found


def _has_report(stored: Turn, turn: PreparedTurn) -> bool:
    """Return whether a stored turn of a log was joined with telemetry, which reports latencies."""
    is_in_log = turn.first_token_ms is not None or turn.duration_ms is not None
    has_latency = stored.first_token_ms is not None or stored.duration_ms is not None
    return not is_in_log and (turn.request_id is None or has_latency)


def _timed(turns: Sequence[PreparedTurn]) -> list[tuple[datetime, PreparedTurn]]:
    """Return the turns with their times. One without a time follows the one before."""
    last = datetime.min.replace(tzinfo=UTC)
    found = []
    for turn in turns:
        last = max(last, turn.at) if turn.at is not None else last
        found.append((last, turn))
    return found
