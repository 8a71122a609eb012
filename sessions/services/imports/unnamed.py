"""Recognize the calls of a log that the gateway recorded in sessions that the client did not name.

Some logs, such as those of Gemini CLI, do not contain the provider's ids, and the client's requests do not
name the session. A call is the same if its usage and its answer are, at about the same time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from uuid import UUID

from django.db.models import CharField
from django.db.models.functions import Cast

from compaction.messages import USAGE_COUNTS, Message, Role, Text, ToolCall
from sessions.models import AgentSession, Turn, TurnSource
from sessions.models.session import GATEWAY
from sessions.selectors.transcripts.rows import messages_load
from sessions.services.calls.match import SAME_CALL
from sessions.services.imports.prepare import PreparedTurn

#: The recorded turns, by the counts of their usage.
_Recorded = defaultdict[tuple[int, ...], list[Turn]]


def calls_identify(
    project_id: UUID, turns: Sequence[PreparedTurn]
) -> tuple[Sequence[PreparedTurn], UUID | None]:
    """Return the turns, in which recorded calls have the provider's response id.

    The second value is the session in which most of these calls were recorded, None if there are none.
    """
    recorded, sessions = _recorded(project_id, turns), Counter[UUID]()
    if not recorded:
        return turns, None
    found = list(turns)
    for index, turn in enumerate(turns):
        if (same := _same(turn, recorded)) is not None:
            recorded[_counts(same)].remove(same)
            found[index] = replace(turn, response_id=same.response_id)
            sessions[same.session.parent_id or same.session_id] += 1
    return found, max(sessions, key=sessions.__getitem__, default=None)


def _recorded(project_id: UUID, turns: Sequence[PreparedTurn]) -> _Recorded:
    found: _Recorded = defaultdict(list)
    calls = [(turn.at, turn.usage) for turn in turns if turn.at and turn.usage and not turn.request_id]
    if calls:
        first, last = min(at for at, _ in calls) - SAME_CALL, max(at for at, _ in calls) + SAME_CALL
        unnamed = AgentSession.objects.filter(
            project=project_id,
            origin=GATEWAY,
            external_id=Cast("pk", CharField()),
            started_at__lte=last,
            last_active_at__gte=first,
        )
        rows = Turn.objects.filter(
            session__in=unnamed,
            source=TurnSource.GATEWAY,
            response_id__isnull=False,
            at__range=(first, last),
            uncached_tokens__in={usage.uncached_tokens for _, usage in calls},
        )
        for row in rows.select_related("session"):
            found[_counts(row)].append(row)
    return found


def _same(turn: PreparedTurn, recorded: _Recorded) -> Turn | None:
    """Return the recorded turn with the usage and the answer of a call that is nearest in time, or None.

    A call whose provider's id is in the log is recognized by it.
    """
    at, usage = turn.at, turn.usage
    if at is None or usage is None or turn.request_id:
        return None
    near = [row for row in recorded.get(_counts(usage), ()) if abs(row.at - at) <= SAME_CALL]
    answer = _answer([message.value for message in turn.messages])
    by_distance = sorted(near, key=lambda row: abs(row.at - at))
    return next((row for row in by_distance if _answer(_messages(row)) == answer), None)


def _counts(usage: object) -> tuple[int, ...]:
    return tuple(getattr(usage, name) for name in USAGE_COUNTS)


def _messages(turn: Turn) -> list[Message]:
    spans = [(turn.first_position, turn.first_position + turn.message_count)]
    return [row.value(turn.session.format) for row in messages_load(turn.session_id, spans)]


def _answer(messages: Sequence[Message]) -> tuple[str, list[str]]:
    """Return the text of the answer at the end, without whitespace, and the functions that it calls.

    Logs join the texts of an answer in several ways.
    """
    answer = [*takewhile(lambda message: message.role is Role.ASSISTANT, reversed(messages))]
    parts = [part for message in reversed(answer) for part in message.parts]
    texts = (part.text for part in parts if isinstance(part, Text))
    calls = [part.name for part in parts if isinstance(part, ToolCall) and not part.server]
    return "".join("".join(texts).split()), calls
