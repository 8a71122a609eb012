"""Turns for display: time, prompt size, new tokens and messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from compaction.messages import Usage
from sessions.charts.cache import CACHE_LIFE
from sessions.models import AgentSession, Comment, Pin, Turn
from sessions.pages.blocks import Calls, MessageView, calls_of, message_view
from sessions.selectors import convert
from sessions.selectors.comments import comments_on
from sessions.selectors.pins import pins_at
from sessions.selectors.transcripts.pages import TurnMessages, TurnsPage

_VOICES = {"tool": "tool outputs", "user": "user", "system": "system", "assistant": "answer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnView:
    """A turn for display.

    `new_tokens` are the estimated tokens of its messages by voice, without the answer if its size was
    reported; none for a part of a turn. `growth` is the change of the prompt size since the previous turn in
    tokens of the same kind (reported, served or estimated), `idle` the pause before it, `comments` the
    comments of members. `earlier` and `later` are those of `TurnMessages`.
    """

    turn: Turn
    usage: Usage | None
    new_tokens: Mapping[str, int]
    growth: int | None
    idle: timedelta | None
    messages: Sequence[MessageView]
    comments: Sequence[Comment]
    earlier: int | None
    later: int | None

    @property
    def compaction(self) -> Mapping[str, object] | None:
        found: Mapping[str, object] | None = self.turn.client_compaction
        return found


def turn_views(session: AgentSession, page: TurnsPage, *, is_plain: bool = False) -> list[TurnView]:
    """Build the views of a page of turns, resolving the call of each result."""
    calls: Calls = {}
    for row in page.preceding:
        calls |= calls_of(convert.message_value(row, session.format))
    pins = pins_at(session, [row for held in page.turns for row in held.messages])
    comments = comments_on(session=session, turns=[held.turn.index for held in page.turns])
    return [
        _view(session, held, calls, pins, is_plain, comments.get(held.turn.index, ())) for held in page.turns
    ]


def turn_view(session: AgentSession, page: TurnsPage) -> TurnView:
    """Build the view of a page with a single turn."""
    [view] = turn_views(session, page)
    return view


def _view(
    session: AgentSession,
    held: TurnMessages,
    calls: Calls,
    pins: Mapping[int, Pin],
    is_plain: bool,
    comments: Sequence[Comment],
) -> TurnView:
    messages = [message_view(row, session.format, calls, pins, is_plain=is_plain) for row in held.messages]
    usage = convert.usage_of(held.turn)
    return TurnView(
        turn=held.turn,
        usage=usage,
        new_tokens={} if held.is_part else _new_tokens(messages, is_reported=usage is not None),
        growth=_growth(held.turn, held.previous),
        idle=_idle(held.turn, held.previous),
        messages=messages,
        comments=comments,
        earlier=held.earlier,
        later=held.later,
    )


def _new_tokens(messages: Sequence[MessageView], *, is_reported: bool) -> dict[str, int]:
    sums = Counter[str]()
    for message in messages:
        if not (is_reported and message.voice == "assistant"):
            sums[_VOICES.get(message.voice, message.voice)] += message.tokens
    return dict(sums)  # in a template, `sums.items` of a Counter is the count of "items"


def _growth(turn: Turn, previous: Turn | None) -> int | None:
    if previous is None:
        return None
    if turn.prompt_reported is not None and previous.prompt_reported is not None:
        return turn.prompt_reported - previous.prompt_reported
    if turn.prompt_served is not None and previous.prompt_served is not None:
        return turn.prompt_served - previous.prompt_served
    return turn.prompt_estimate - previous.prompt_estimate


def _idle(turn: Turn, previous: Turn | None) -> timedelta | None:
    pause = turn.at - previous.at if previous is not None else timedelta(0)
    return pause if pause > CACHE_LIFE else None
