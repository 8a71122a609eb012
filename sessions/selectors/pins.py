"""The pinned messages of a session, with who pinned them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sessions.models import AgentSession, Message, Pin
from sessions.store.flags import MessageFlag

#: Pinned messages that the list of a session shows.
PINS_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedMessage:
    """A pinned message: its pin, its turn, and the tool that it calls, if any."""

    pin: Pin
    turn: int
    role: str
    tool: str


def pinned_messages(session: AgentSession) -> Sequence[PinnedMessage]:
    """Return the first pinned messages of a session, in order. At most two queries."""
    pins = list(session.pins.select_related("user", "api_key").order_by("position")[:PINS_SHOWN])
    if not pins:
        return ()
    rows = session.messages.filter(position__in=[pin.position for pin in pins])
    found = {row.position: row for row in rows.only("position", "turn_index", "role", "tool_name")}
    return [
        PinnedMessage(pin=pin, turn=row.turn_index, role=row.role, tool=row.tool_name)
        for pin in pins
        if (row := found.get(pin.position)) is not None
    ]


def pin_at(session: AgentSession, position: int) -> Pin | None:
    """Return the pin of a message, or None."""
    return session.pins.filter(position=position).select_related("user", "api_key").first()


def pins_at(session: AgentSession, rows: Sequence[Message]) -> Mapping[int, Pin]:
    """Return the pins of these messages by position. Runs no query if none of them is pinned."""
    positions = [row.position for row in rows if row.flags & MessageFlag.PINNED]
    if not positions:
        return {}
    pins = session.pins.filter(position__in=positions).select_related("user", "api_key")
    return {pin.position: pin for pin in pins}
