"""The turns with the largest growth of the context, and the message that caused it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import F, Q, Window
from django.db.models.functions import Lag

from compaction.messages import Role
from sessions.models import AgentSession, Message

#: Number of turns shown.
SHOWN = 5
#: Minimum growth shown, in tokens.
MIN_GROWTH = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Jump:
    """A turn whose prompt was `growth` tokens larger than the previous one.

    `position`, `tokens`, `role` and `tool` describe the largest new message. `is_output`: it is the
    output of the tool.
    """

    turn: int
    growth: int
    position: int
    tokens: int
    role: str
    tool: str
    is_output: bool


def largest_jumps(*, session: AgentSession) -> list[Jump]:
    """Return the largest jumps first. Two queries over small columns."""
    turns = session.turns.annotate(
        grown=F("prompt_estimate") - Window(Lag("prompt_estimate", default=0), order_by="index"),
        before=Window(Lag("first_position"), order_by="index"),
    ).values_list("index", "grown", "before", "first_position", "message_count")
    found = [row for row in turns.order_by("-grown")[:SHOWN] if row[1] >= MIN_GROWTH]
    if not found:
        return []
    spans = Q()
    for _, _, before, first, count in found:
        spans |= Q(position__gte=first if before is None else before, position__lt=first + count)
    rows = list(
        session.messages.filter(spans)
        .only("position", "turn_index", "role", "tokens", "tool_name")
        .order_by("position")
    )
    jumps = (_jump(rows, turn, growth) for turn, growth, *_ in found)
    return [jump for jump in jumps if jump is not None]


def _jump(rows: Sequence[Message], turn: int, growth: int) -> Jump | None:
    entered = [*_output_messages(rows, turn - 1), *_input_messages(rows, turn)]
    if not entered:
        return None
    largest = max(entered, key=lambda row: row.tokens)
    callers = (
        row for row in reversed(rows) if row.position < largest.position and row.role == Role.ASSISTANT
    )
    before = next(callers, None)
    is_output = largest.role != Role.ASSISTANT and before is not None and bool(before.tool_name)
    return Jump(
        turn=turn,
        growth=growth,
        position=largest.position,
        tokens=largest.tokens,
        role=largest.role,
        tool=before.tool_name if is_output and before is not None else largest.tool_name,
        is_output=is_output,
    )


def _input_messages(rows: Sequence[Message], turn: int) -> list[Message]:
    """Return the messages of a turn before the model's response."""
    messages = [row for row in rows if row.turn_index == turn]
    response = next((row.position for row in messages if row.role == Role.ASSISTANT), None)
    return [row for row in messages if response is None or row.position < response]


def _output_messages(rows: Sequence[Message], turn: int) -> list[Message]:
    """Return the model's response and the messages after it: the next call is the first to read them."""
    messages = [row for row in rows if row.turn_index == turn]
    response = next((row.position for row in messages if row.role == Role.ASSISTANT), None)
    return [row for row in messages if response is not None and row.position >= response]
