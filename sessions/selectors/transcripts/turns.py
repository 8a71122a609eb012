"""Read the messages of a range of turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from django.db.models import Sum

from compaction.messages import Message as MessageValue
from sessions.models import AgentSession, Message, Turn
from sessions.selectors.transcripts.rows import Span, messages_load


def turns_messages(session: AgentSession, first: int, end: int) -> Iterator[MessageValue]:
    """Yield the messages of the turns from `first` up to, not including, `end`, in order."""
    return (row.value(session.format) for row in messages_load(session.pk, [_span(session, first, end)]))


def messages_by_turn(session: AgentSession, first: int, end: int) -> Iterator[tuple[int, list[MessageValue]]]:
    """Yield the turns from `first` up to, not including, `end`, each with its messages."""
    for turn, messages in groupby(turns_messages(session, first, end), key=lambda message: message.turn):
        yield turn, list(messages)


def turns_tokens(session: AgentSession, first: int, end: int) -> Mapping[int, int]:
    """Return the tokens of the messages of each of these turns."""
    start, stop = _span(session, first, end)
    rows = Message.objects.filter(session=session, position__gte=start, position__lt=stop)
    return dict(rows.values("turn_index").annotate(sum=Sum("tokens")).values_list("turn_index", "sum"))


def _span(session: AgentSession, first: int, end: int) -> Span:
    """Return the positions of the first message of these turns and of the first message after them."""
    turns = Turn.objects.filter(session=session, index__gte=first, index__lt=end).order_by("index")
    rows = list(turns.only("first_position", "message_count"))
    return (rows[0].first_position, rows[-1].first_position + rows[-1].message_count) if rows else (0, 0)
