"""The messages of a run of turns, for those who read a session on from where they were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django.db.models import Sum

from compaction.messages import Message as MessageValue
from sessions.models import AgentSession, Message, Turn
from sessions.selectors.stored_rows import Span, messages_load


def turns_messages(session: AgentSession, first: int, end: int) -> Iterator[MessageValue]:
    """The messages of the turns from `first` up to but without `end`, in order."""
    return (row.value(session.format) for row in messages_load(session.pk, [_span(session, first, end)]))


def turns_tokens(session: AgentSession, first: int, end: int) -> Mapping[int, int]:
    """The tokens of the messages of each of these turns."""
    start, stop = _span(session, first, end)
    rows = Message.objects.filter(session=session, position__gte=start, position__lt=stop)
    return dict(rows.values("turn_index").annotate(sum=Sum("tokens")).values_list("turn_index", "sum"))


def _span(session: AgentSession, first: int, end: int) -> Span:
    """The positions of the turns' messages."""
    turns = Turn.objects.filter(session=session, index__gte=first, index__lt=end).order_by("index")
    spans = list(turns.values_list("first_position", "message_count"))
    return (spans[0][0], sum(spans[-1])) if spans else (0, 0)
