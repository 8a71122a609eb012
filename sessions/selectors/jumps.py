"""The turns at which a context grew most, and the message that did it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import F, Q, Window
from django.db.models.functions import Lag

from compaction.messages import Role
from sessions.models import AgentSession, Message

#: Turns that the page names.
SHOWN = 5
#: Growth below this is not worth naming, in tokens.
LEAST = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Jump:
    """A turn whose prompt was `growth` tokens larger than the one before. `position`, `tokens` and `tool` are
    of the largest message that entered; `is_output` says that it is what the tool answered."""

    turn: int
    growth: int
    position: int
    tokens: int
    role: str
    tool: str
    is_output: bool


def largest_jumps(*, session: AgentSession) -> list[Jump]:
    """The largest first; two queries over small columns."""
    turns = session.turns.annotate(
        grown=F("prompt_estimate") - Window(Lag("prompt_estimate", default=0), order_by="index"),
        before=Window(Lag("first_position"), order_by="index"),
    ).values_list("index", "grown", "before", "first_position", "message_count")
    found = [row for row in turns.order_by("-grown")[:SHOWN] if row[1] >= LEAST]
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
    entered = [*_answered(rows, turn - 1), *_asked(rows, turn)]
    if not entered:
        return None
    largest = max(entered, key=lambda row: row.tokens)
    asked = (row for row in reversed(rows) if row.position < largest.position and row.role == Role.ASSISTANT)
    before = next(asked, None)
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


def _asked(rows: Sequence[Message], turn: int) -> list[Message]:
    """What the turn brought before its answer."""
    own = [row for row in rows if row.turn_index == turn]
    answer = next((row.position for row in own if row.role == Role.ASSISTANT), None)
    return [row for row in own if answer is None or row.position < answer]


def _answered(rows: Sequence[Message], turn: int) -> list[Message]:
    """The answer of a turn and what came behind it, which the next call is the first to read."""
    own = [row for row in rows if row.turn_index == turn]
    answer = next((row.position for row in own if row.role == Role.ASSISTANT), None)
    return [row for row in own if answer is not None and row.position >= answer]
