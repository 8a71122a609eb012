"""The messages of a session that match a filter, one page at a time, newest first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import BooleanField, Q, QuerySet
from django.db.models.expressions import RawSQL

from compaction.messages import Role
from sessions.models import AgentSession, Message, ToolOutputs
from sessions.selectors.transcripts.pages import TurnMessages, calls_before
from sessions.selectors.transcripts.rows import Span

#: Messages per page.
SHOWN = 16

#: Messages among which matching ones are searched first, and by how much this number then grows.
_SEARCHED, _GROWTH = 2_048, 16

#: The values of `MessageFilter.role`.
ROLES = ("user", "assistant", "tool", "system")


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFilter:
    """Conditions that messages must all meet. `role` is one of `ROLES`; `tool` selects outputs of a tool."""

    role: str = ""
    tool: str = ""
    errors: bool = False

    @property
    def is_set(self) -> bool:
        return self != MessageFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesPage:
    """Matching messages in their turns, in order.

    `before` and `after` are the cursors of the older and the newer page; None if there are no more messages.
    """

    turns: Sequence[TurnMessages]
    preceding: Sequence[Message]
    before: int | None
    after: int | None


def messages_page(
    *,
    session: AgentSession,
    filters: MessageFilter,
    before: int | None,
    after: int | None,
    around: int | None,
) -> MessagesPage:
    """Return the newest matching messages, or those before, after or around a position.

    Five queries, and up to two more for each factor of 16 by which the distance of the matching messages
    exceeds 2,048.
    """
    at, most_older, most_newer = before, SHOWN, 0
    if around is not None:
        at, most_older, most_newer = around, SHOWN // 2, SHOWN // 2
    elif after is not None:
        at, most_older, most_newer = after + 1, 0, SHOWN
    # One more than is shown, to know whether there are more.
    older = _older(session, filters, session.message_count if at is None else at, most_older + 1)
    newer = [] if at is None else _newer(session, filters, at, most_newer + 1)
    page = [*older[:most_older][::-1], *newer[:most_newer]]
    turns = {turn.index: turn for turn in session.turns.filter(index__in={row.turn_index for row in page})}
    by_turn: defaultdict[int, list[Message]] = defaultdict(list)
    for row in page:
        by_turn[row.turn_index].append(row)
    return MessagesPage(
        turns=[
            TurnMessages(turn=turns[index], previous=None, messages=messages)
            for index, messages in by_turn.items()
        ],
        preceding=calls_before(session=session, positions=[row.position for row in page]),
        before=page[0].position if page and len(older) > most_older else None,
        after=page[-1].position if page and len(newer) > most_newer else None,
    )


def _older(session: AgentSession, filters: MessageFilter, end: int, most: int) -> list[Message]:
    """Return the last matching messages before a position, newest first."""
    count = _SEARCHED
    while True:
        first = max(end - count, 0)
        found = list(_matching(session, filters, (first, end)).order_by("-position")[:most])
        if len(found) == most or not first:
            return found
        count *= _GROWTH


def _newer(session: AgentSession, filters: MessageFilter, first: int, most: int) -> list[Message]:
    """Return the first matching messages from a position on."""
    count = _SEARCHED
    while True:
        end = min(first + count, session.message_count)
        found = list(_matching(session, filters, (first, end)).order_by("position")[:most])
        if len(found) == most or end == session.message_count:
            return found
        count *= _GROWTH


def _matching(session: AgentSession, filters: MessageFilter, span: Span) -> QuerySet[Message]:
    """Select the matching messages in a span of positions."""
    outputs = (session.pk, *(position // ToolOutputs.MESSAGES for position in span))
    rows = Message.objects.filter(session=session, position__gte=span[0], position__lt=span[1])
    if filters.errors:
        rows = rows.filter(_is_output("o.is_error", *outputs))
    if filters.tool:
        rows = rows.filter(_is_output("o.tool = %s", *outputs, filters.tool))
    has_output = Q(position__in=RawSQL(_OUTPUTS, outputs))  # noqa: S611
    if filters.role == "tool":
        rows = rows.filter(Q(role=Role.TOOL) | has_output)
    elif filters.role == "user":
        rows = rows.filter(~has_output, role=Role.USER)
    elif filters.role:
        rows = rows.filter(role=filters.role)
    return rows.select_related("blob")


def _is_output(condition: str, *parameters: object) -> RawSQL:
    """Return the condition that a message contains an output of a tool that meets `condition`.

    The array is read once. Postgres may run a subquery for each message of a new table without statistics.
    """
    positions = f"ARRAY({_OUTPUTS} AND {condition})"
    return RawSQL(f"agent_sessions_message.position = ANY({positions})", parameters, BooleanField())  # noqa: S611


#: The positions of the outputs of tools in a range of blocks.
_OUTPUTS = """
SELECT o.position
  FROM agent_sessions_tooloutputs b, unnest(b.positions, b.tools, b.errors) AS o (position, tool, is_error)
 WHERE b.session_id = %s AND b.number BETWEEN %s AND %s
"""
