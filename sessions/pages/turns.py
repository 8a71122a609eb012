"""What the page shows of a turn: when, how large its prompt was, what entered, and its messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from compaction.messages import Usage
from sessions.models import AgentSession, Turn
from sessions.pages.blocks import ShownMessage, calls_of, shown_message
from sessions.selectors import convert
from sessions.selectors.transcript import TurnMessages, TurnsPage

#: A pause worth saying: the provider's prompt cache is cold after it.
IDLE = timedelta(minutes=5)

_VOICES = {"tool": "tool outputs", "user": "user", "system": "system", "assistant": "answer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTurn:
    """`entered` is tokens (estimate) that this turn brought, by who brought them. `growth` is the prompt's
    change since the turn before, in tokens of one kind of figure; `idle` the pause before it."""

    turn: Turn
    usage: Usage | None
    entered: Mapping[str, int]
    growth: int | None
    idle: timedelta | None
    messages: Sequence[ShownMessage]

    @property
    def compaction(self) -> Mapping[str, object] | None:
        return self.turn.client_compaction


def shown_turns(session: AgentSession, page: TurnsPage) -> list[ShownTurn]:
    """The page's turns in order, with each result's tool by its name."""
    tool_names: dict[str, str] = {}
    for row in page.preceding:
        tool_names |= calls_of(convert.message_value(row, session.format))
    return [_shown(session, held, tool_names) for held in page.turns]


def shown_turn(session: AgentSession, page: TurnsPage) -> ShownTurn:
    """The page's only turn."""
    [shown] = shown_turns(session, page)
    return shown


def _shown(session: AgentSession, held: TurnMessages, tool_names: dict[str, str]) -> ShownTurn:
    messages = [shown_message(row, session.format, tool_names) for row in held.messages]
    return ShownTurn(
        turn=held.turn,
        usage=convert.usage_of(held.turn),
        entered=_entered(messages),
        growth=_growth(held.turn, held.previous),
        idle=_idle(held.turn, held.previous),
        messages=messages,
    )


def _entered(messages: Sequence[ShownMessage]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for message in messages:
        name = _VOICES.get(message.voice, message.voice)
        sums[name] = sums.get(name, 0) + message.tokens
    return sums


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
    return pause if pause > IDLE else None
