"""Shorten a very long history before a compaction is planned.

A plan reads every message that the prompt shows. A session that was imported or never compacted can show
hundreds of thousands, of which the plan would keep the newest. The others are removed without being read, so
that planning takes bounded time and memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import LiteralString

from django.db.models import Exists, OuterRef, QuerySet, Sum

from compaction.descriptors import dropped_marker
from compaction.edits import Edit, Op
from compaction.layout import head_end
from compaction.messages import Role
from compaction.planning.pipeline import Plan
from compaction.planning.record import PlanState, StepRecord
from compaction.sizes.tokens import MESSAGE_OVERHEAD, TokenCounter
from compaction.strategies import drop_oldest
from sessions.models import AgentSession, Message
from sessions.selectors.past_prompts.runs import run_of
from sessions.selectors.transcripts.rows import Span, messages_load, visible_spans
from sessions.store.postgres import rows_fetch

#: A prompt with more messages is shortened to about `KEPT_MESSAGES`.
MAX_MESSAGES, KEPT_MESSAGES = 20_000, 4_000

#: Number of messages to search for the end of the head, and for a request at which to cut.
_NEAR = 200


#: The last of `_requests`, in one scan from the end: agents may work for thousands of turns on one request.
_LATEST_REQUEST: LiteralString = """
SELECT position, turn_index
  FROM (SELECT position, turn_index, role, omitted_from,
               lead(role = 'assistant' AND tool_name <> '') OVER (ORDER BY position DESC) AS answers_calls
          FROM agent_sessions_message WHERE session_id = %(session)s) AS m
 WHERE role = 'user' AND omitted_from IS NULL AND answers_calls IS NOT TRUE
 ORDER BY position DESC LIMIT 1
"""


def history_shorten(
    session: AgentSession, edits: Sequence[Edit], *, counter: TokenCounter
) -> tuple[Edit, ...]:
    """Return the edits that evict the oldest messages of a very long prompt, none for any other."""
    spans = visible_spans(edits, start=session.context_start, end=session.message_count)
    if sum(end - start for start, end in spans) <= MAX_MESSAGES:
        return ()
    start, end = _head_end(session), _cut(session)
    kept = _protected(session, start, end)
    runs = [(first, last) for first, last in _gaps(kept, start, end) if _overlaps(spans, first, last)]
    count = sum(last - first + 1 for first, last in runs)
    found: list[Edit] = []
    for first, last in runs:
        text = "" if found else dropped_marker(count, first, runs[-1][1])
        found.append(
            Edit(
                strategy=drop_oldest.NAME,
                op=Op.EVICT,
                position=first,
                end=last,
                text=text,
                reason=f"{last - first + 1:,} oldest messages of a very long history",
                tokens_before=_tokens(session, spans, first, last),
                tokens_after=MESSAGE_OVERHEAD + counter.count(text) if text else 0,
            )
        )
    return tuple(found)


def with_shortening(plan: Plan, shortening: Sequence[Edit]) -> Plan:
    """Add the edits that shortened the history to the plan that was made after them."""
    if not shortening:
        return plan
    saved = sum(edit.tokens_before - edit.tokens_after for edit in shortening)
    record = plan.record
    before = record.tokens_before
    step = StepRecord(name=drop_oldest.NAME, edits=len(shortening), tokens_after=before)
    record = replace(
        record,
        state=PlanState.DONE,
        steps=(step, *record.steps),
        strategies=tuple(dict.fromkeys((drop_oldest.NAME, *record.strategies))),
        tokens_before=before + saved,
        tokens_saved=record.tokens_saved + saved,
        dropped=record.dropped + sum(edit.end - edit.position + 1 for edit in shortening),
    )
    return replace(plan, edits=(*shortening, *plan.edits), record=record)


def _messages(session: AgentSession) -> QuerySet[Message]:
    """Select the messages that the client still sends."""
    return Message.objects.filter(session=session, omitted_from=None)


def _requests(session: AgentSession) -> QuerySet[Message]:
    """Select the messages that a user wrote. Anthropic's results of tools also have the role of the user."""
    before = Message.objects.filter(session=session, position=OuterRef("position") - 1)
    calls = before.filter(role=Role.ASSISTANT.value).exclude(tool_name="")
    return _messages(session).filter(~Exists(calls), role=Role.USER.value)


def _head_end(session: AgentSession) -> int:
    """Return the position after the head."""
    start = session.context_start
    rows = messages_load(session.pk, [(start, start + _NEAR)])
    messages = [row.value(session.format) for row in rows if row.omitted_from is None]
    end = head_end(messages)
    return messages[end - 1].position + 1 if end else start


def _cut(session: AgentSession) -> int:
    """Return the first position to keep: a request, so that no tool pair is cut, if one is near."""
    end = session.message_count - KEPT_MESSAGES
    near = _requests(session).filter(position__gte=end, position__lt=end + _NEAR)
    first = near.order_by("position").values_list("position", flat=True).first()
    return end if first is None else first


def _protected(session: AgentSession, start: int, end: int) -> Sequence[int]:
    """Return the positions that must stay: the turns of pinned messages and of the latest request."""
    pins = session.pins.filter(position__gte=start, position__lt=end).values_list("position", flat=True)
    pinned = _messages(session).filter(position__in=list(pins))
    turns = set(pinned.values_list("turn_index", flat=True))
    for position, turn in rows_fetch(_LATEST_REQUEST, {"session": session.pk}):
        if position < end:
            turns.add(turn)
    rows = session.turns.filter(index__in=turns).order_by("index")
    spans = rows.values_list("first_position", "message_count")
    return [at for first, count in spans for at in range(max(first, start), min(first + count, end))]


def _gaps(kept: Iterable[int], start: int, end: int) -> Iterator[Span]:
    """Yield the runs between the kept positions, both ends inclusive."""
    for position in (*kept, end):
        if position > start:
            yield start, position - 1
        start = position + 1


def _overlaps(spans: Iterable[Span], first: int, last: int) -> bool:
    return any(start <= last and first < end for start, end in spans)


def _tokens(session: AgentSession, spans: Iterable[Span], first: int, last: int) -> int:
    """Return the tokens that the prompt shows of the messages from `first` to `last`."""
    shown = ((max(start, first), min(end, last + 1)) for start, end in spans)
    return sum(_tokens_of(session, start, end) for start, end in shown if start < end)


def _tokens_of(session: AgentSession, start: int, end: int) -> int:
    """Return the tokens of the messages from `start` up to `end` without those that the client omits."""
    run = run_of(session, first=start, end=end)
    rows = session.messages.filter(position__gte=start, position__lt=end, omitted_from__isnull=False)
    omitted = rows.aggregate(tokens=Sum("tokens"))["tokens"] or 0
    return run.tokens - omitted if run is not None else 0
