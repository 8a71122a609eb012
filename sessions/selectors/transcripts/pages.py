"""The transcript: a page of turns with their messages, or one message. Never the whole history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from compaction.messages import Role
from sessions.models import AgentSession, Message, Turn
from sessions.selectors.transcripts.rows import CALLS_BEFORE

#: Turns per page.
SHOWN = 10
#: Messages per page of the raw data.
RAW_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMessages:
    """A turn with its messages in order, and the previous turn, if any."""

    turn: Turn
    previous: Turn | None
    messages: Sequence[Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsPage:
    """Turns in order. `older` and `newer`: there are turns before the first or after the last.

    `preceding` are the messages of the turn before the first: they contain the tool calls that it answers.
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
) -> TurnsPage:
    """Return the newest `limit` turns, or those before, after or around a turn index.

    Two queries, regardless of the length of the session: turns by index, messages by position.
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
    turns, preceding = _with_messages(session, found, previous)
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
    session: AgentSession, turns: Sequence[Turn], previous: Turn | None
) -> tuple[Sequence[TurnMessages], Sequence[Message]]:
    by_turn: defaultdict[int, list[Message]] = defaultdict(list)
    for message in _messages(session, [*([previous] if previous else []), *turns]):
        by_turn[message.turn_index].append(message)
    predecessors = [previous, *turns[:-1]]
    with_messages = [
        TurnMessages(turn=turn, previous=before, messages=by_turn[turn.index])
        for turn, before in zip(turns, predecessors, strict=False)
    ]
    return with_messages, by_turn[previous.index] if previous else ()


def _messages(session: AgentSession, turns: Sequence[Turn]) -> Sequence[Message]:
    spans = [(t.first_position, t.first_position + t.message_count) for t in turns if t.message_count]
    if not spans:
        return ()
    rows = session.messages.filter(position__gte=spans[0][0], position__lt=spans[-1][1])
    return list(rows.select_related("blob").order_by("position"))
