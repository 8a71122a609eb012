"""The messages of a session that match a filter, one page at a time, newest first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.db.models.expressions import RawSQL

from compaction.messages import Role
from sessions.models import AgentSession, Message
from sessions.selectors.transcripts.pages import TurnMessages, calls_before

#: Messages per page.
SHOWN = 16

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
    """Return the newest matching messages, or those before, after or around a position. Five queries."""
    at, most_older, most_newer = before, SHOWN, 0
    if around is not None:
        at, most_older, most_newer = around, SHOWN // 2, SHOWN // 2
    elif after is not None:
        at, most_older, most_newer = after + 1, 0, SHOWN
    rows = _matching(session, filters).select_related("blob")
    # One more than is shown, to know whether there are more.
    below = rows if at is None else rows.filter(position__lt=at)
    older = list(below.order_by("-position")[: most_older + 1])
    newer = [] if at is None else list(rows.filter(position__gte=at).order_by("position")[: most_newer + 1])
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


def _matching(session: AgentSession, filters: MessageFilter) -> QuerySet[Message]:
    rows = Message.objects.filter(session=session)
    if filters.errors:
        rows = rows.filter(_has_output(session, "o.is_error"))
    if filters.tool:
        rows = rows.filter(_has_output(session, "o.tool = %s", filters.tool))
    if filters.role == "tool":
        rows = rows.filter(Q(role=Role.TOOL) | _has_output(session))
    elif filters.role == "user":
        rows = rows.filter(~_has_output(session), role=Role.USER)
    elif filters.role:
        rows = rows.filter(role=filters.role)
    return rows


def _has_output(session: AgentSession, condition: str = "true", *parameters: str) -> Q:
    """Return the condition that a message contains an output of a tool that meets `condition`."""
    positions = RawSQL(f"{_OUTPUTS} AND {condition}", (session.pk, *parameters))  # noqa: S611
    return Q(position__in=positions)


_OUTPUTS = """
SELECT o.position
  FROM agent_sessions_tooloutputs b, unnest(b.positions, b.tools, b.errors) AS o (position, tool, is_error)
 WHERE b.session_id = %s
"""
