"""The messages of a run of turns, for those who read a session on from where they were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django.db.models import QuerySet, Sum

from compaction.messages import Message as MessageValue
from sessions.convert import message_value
from sessions.models import AgentSession, Message, Turn


def turns_messages(session: AgentSession, first: int, end: int) -> Iterator[MessageValue]:
    """The messages of the turns from `first` up to but without `end`, in order."""
    rows = _rows(session, first, end).select_related("blob").order_by("position")
    return (message_value(row, session.format) for row in rows)


def turns_tokens(session: AgentSession, first: int, end: int) -> Mapping[int, int]:
    """The tokens of the messages of each of these turns."""
    rows = _rows(session, first, end).values("turn_index").annotate(sum=Sum("tokens")).order_by()
    return dict(rows.values_list("turn_index", "sum"))


def _rows(session: AgentSession, first: int, end: int) -> QuerySet[Message]:
    """By position, which is what the messages' key has."""
    turns = Turn.objects.filter(session=session, index__gte=first, index__lt=end).order_by("index")
    spans = list(turns.values_list("first_position", "message_count"))
    if not spans:
        return Message.objects.none()
    return Message.objects.filter(
        session=session, position__gte=spans[0][0], position__lt=spans[-1][0] + spans[-1][1]
    )
