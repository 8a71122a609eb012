"""The transcript: a page of turns with their messages, or one message. Never the whole history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from django.db.models import Q

from compaction.messages import Role
from sessions.models import AgentSession, Message, Turn
from sessions.selectors.transcripts.rows import CALLS_BEFORE, joined

#: Turns per page, and messages per turn. A turn has more if the client sent a history at once.
SHOWN, MESSAGES_SHOWN = 10, 20
#: Messages per page of the raw data.
RAW_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMessages:
    """A turn with its messages in order, and the previous turn, if any.

    `earlier` and `later` are the positions of the messages before and after, if only a part of a long turn
    was read.
    """

    turn: Turn
    previous: Turn | None
    messages: Sequence[Message]
    earlier: int | None = None
    later: int | None = None

    @property
    def is_part(self) -> bool:
        return self.earlier is not None or self.later is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsPage:
    """Turns in order. `older` and `newer`: there are turns before the first or after the last.

    `preceding` are messages before those of the turns: they contain the tool calls that these answer.
    """

    turns: Sequence[TurnMessages]
    preceding: Sequence[Message] = ()
    older: bool
    newer: bool

    @property
    def first(self) -> int:
        return self.turns[0].turn.index

    @property
    def last(self) -> int:
        return self.turns[-1].turn.index


def turns_page(
    *,
    session: AgentSession,
    before: int | None = None,
    after: int | None = None,
    around: int | None = None,
    limit: int = SHOWN,
    part: int | None = None,
    position: int = 0,
) -> TurnsPage:
    """Return the newest `limit` turns, or those before, after or around a turn index.

    Reads up to `part` messages of each turn: those around `position`, or the first ones. Two queries,
    regardless of the length of the session: turns by index, messages by position. A third one reads the calls
    before a part that does not begin its turn.
    """
    if around is not None:
        before = min(around + limit // 2, session.turn_count)
    first = after + 1 if after is not None else max((before or session.turn_count) - limit, 0)
    if before == 0:
        return TurnsPage(turns=(), older=False, newer=False)
    end = first + limit if before is None else before
    # Also read the turn before the first one, which is compared with it.
    found = list(session.turns.filter(index__gte=max(first - 1, 0), index__lt=end).order_by("index"))
    previous = found.pop(0) if found and found[0].index < first else None
    turns, preceding = _with_messages(session, found, previous, part, position)
    return TurnsPage(
        turns=turns,
        preceding=preceding,
        older=bool(found) and previous is not None,
        newer=bool(found) and found[-1].index < session.turn_count - 1,
    )


def message_get(*, session: AgentSession, position: int) -> Message | None:
    """Return the message at a position, or None."""
    return session.messages.filter(position=position).select_related("blob").first()


@dataclass(frozen=True, slots=True, kw_only=True)
class RawPage:
    """A page of messages without bodies, newest first. `before` is the cursor of the next page."""

    rows: Sequence[Message]
    before: int | None


def raw_messages(*, session: AgentSession, before: int | None) -> RawPage:
    """Return a page of messages before a position. One query by the primary key."""
    rows = session.messages.only("position", "turn_index", "role", "tokens", "tool_name", "source_id")
    rows = rows.order_by("-position")
    if before is not None:
        rows = rows.filter(position__lt=before)
    found = list(rows[: RAW_SHOWN + 1])
    page = found[:RAW_SHOWN]
    return RawPage(rows=page, before=page[-1].position if len(found) > RAW_SHOWN else None)


def calls_before(*, session: AgentSession, positions: Sequence[int]) -> Sequence[Message]:
    """Return the messages shortly before these positions that contain tool calls."""
    near = {at for position in positions for at in range(max(position - CALLS_BEFORE, 0), position)}
    rows = session.messages.filter(position__in=near, role=Role.ASSISTANT).exclude(tool_name="")
    return list(rows.select_related("blob").order_by("position"))


def _with_messages(
    session: AgentSession, turns: Sequence[Turn], previous: Turn | None, part: int | None, position: int
) -> tuple[Sequence[TurnMessages], Sequence[Message]]:
    spans = {turn.index: _span(turn, part, position) for turn in turns}
    before = _span(previous, part, previous.first_position + previous.message_count - 1) if previous else None
    by_turn: defaultdict[int, list[Message]] = defaultdict(list)
    for message in _messages(session, [*([before] if before else []), *spans.values()]):
        by_turn[message.turn_index].append(message)
    found = []
    for turn, predecessor in zip(turns, [previous, *turns[:-1]], strict=False):
        first, end = spans[turn.index]
        last = turn.first_position + turn.message_count
        found.append(
            TurnMessages(
                turn=turn,
                previous=predecessor,
                messages=by_turn[turn.index],
                earlier=first - 1 if first > turn.first_position else None,
                later=end if end < last else None,
            )
        )
    preceding = list(by_turn[previous.index]) if previous else []
    starts = [each.earlier + 1 for each in found if each.earlier is not None]
    return found, [*preceding, *(calls_before(session=session, positions=starts) if starts else ())]


def _span(turn: Turn, part: int | None, position: int) -> tuple[int, int]:
    """Return the first position and the end of the messages of a turn, or of the part with `position`."""
    first, end = turn.first_position, turn.first_position + turn.message_count
    if part is None:
        return first, end
    if first <= position < end:
        first = position - (position - first) % part
    return first, min(first + part, end)


def _messages(session: AgentSession, spans: Sequence[tuple[int, int]]) -> Sequence[Message]:
    ranges = [Q(position__gte=first, position__lt=end) for first, end in joined(spans) if first < end]
    if not ranges:
        return ()
    rows = session.messages.filter(reduce(or_, ranges))
    return list(rows.select_related("blob").order_by("position"))
