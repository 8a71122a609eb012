"""The turns with the largest growth of the prompt, and its cause.

The cause is the largest new message, a revert, or a new system prompt or tool definitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Q, QuerySet, Window
from django.db.models.functions import Coalesce, Lag

from compaction.messages import Role
from sessions.models import AgentSession, Turn
from sessions.selectors.charts.stretches import NOTHING, Largest

#: Number of turns shown.
SHOWN = 5
#: Minimum growth shown, in tokens.
MIN_GROWTH = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Jump:
    """A turn whose prompt, as it was served, was `growth` tokens larger than the previous one.

    `position`, `tokens`, `role` and `tool` describe the largest new message, before compaction.
    `is_shortened`: a compaction removed tokens before this turn. `is_output`: the message is the output of
    the tool. `reverted` are the numbers of the compactions whose revert restored more tokens than the message
    has. `preamble_tokens` is the growth of the system prompt and tool definitions if it exceeds the message.
    """

    turn: int
    growth: int
    is_shortened: bool
    position: int
    tokens: int
    role: str
    tool: str
    is_output: bool
    reverted: Sequence[int]
    preamble_tokens: int


def largest_jumps(*, session: AgentSession, known: Largest = NOTHING) -> list[Jump]:
    """Return the largest jumps first. At most five queries. `known` are those of `session`."""
    rows = _rows_of_long(session, known) if known.end else _rows(session.turns.all())
    largest = sorted(rows, key=lambda row: -row.grown)[:SHOWN]
    found = [row for row in largest if row.grown >= MIN_GROWTH]
    if not found:
        return []
    spans = Q()
    for row in found:
        start = row.first_position if row.before is None else row.before
        spans |= Q(position__gte=start, position__lt=row.first_position + row.message_count)
    # A turn may have thousands of messages, for which model instances would take several times as long.
    columns = ("position", "turn_index", "role", "tokens", "tool_name")
    messages = list(session.messages.filter(spans).order_by("position").values_list(*columns, named=True))
    reverts = _reverts(session, [row.index for row in found])
    added = _preambles_added(session, found)
    jumps = (_jump(messages, row, reverts[row.index], added.get(row.index, 0)) for row in found)
    return [jump for jump in jumps if jump is not None]


def _rows(turns: QuerySet[Turn], limit: int = SHOWN) -> list[Any]:
    """Return the growth of each of these turns since the one before it among them, largest first."""
    rows = turns.annotate(
        pushed=F("prompt_estimate") - Window(Lag("prompt_estimate", default=0), order_by="index"),
        served=F("prompt_served") - Window(Lag("prompt_served", default=0), order_by="index"),
        grown=Coalesce(F("served"), F("pushed")),
        before=Window(Lag("first_position"), order_by="index"),
        version_before=Window(Lag("preamble_version", default=0), order_by="index"),
    )
    columns = ("index", "grown", "pushed", "before", "first_position", "message_count")
    versions = ("preamble_version", "version_before")
    return list(rows.order_by("-grown").values_list(*columns, *versions, named=True)[:limit])


def _rows_of_long(session: AgentSession, known: Largest) -> list[Any]:
    """Return the growth of the turns that grew most in the stored stretches, and of the newest turns."""
    newest = _rows(session.turns.filter(index__gte=known.end - 1))
    pairs = {turn for grown in known.growths for turn in (grown - 1, grown)}
    older = _rows(session.turns.filter(index__in=pairs), limit=len(pairs))
    rows = [row for row in newest if row.index >= known.end]
    return rows + [row for row in older if row.index in known.growths]


def _preambles_added(session: AgentSession, turns: Sequence[Any]) -> Mapping[int, int]:
    """Return by how many tokens the system prompt and tool definitions grew, by turn that changed them."""
    changed = [turn for turn in turns if turn.preamble_version != turn.version_before]
    if not changed:
        return {}
    versions = {version for turn in changed for version in (turn.preamble_version, turn.version_before)}
    rows = session.preambles.filter(version__in=versions)
    sizes = dict(rows.values_list("version", F("system_tokens") + F("tools_tokens")))
    return {
        turn.index: sizes.get(turn.preamble_version, 0) - sizes.get(turn.version_before, 0)
        for turn in changed
    }


def _reverts(session: AgentSession, turns: Sequence[int]) -> Mapping[int, Sequence[int]]:
    """Return the numbers of the compactions that were reverted before each of these turns."""
    # A prompt that was not served before the revert is measured again with the next turn only.
    found = session.compactions.filter(reverted_turn__in={n - late for n in turns for late in (0, 1)})
    rows = found.order_by("number").values_list("number", "reverted_turn")
    return {turn: [number for number, first in rows if first in {turn - 1, turn}] for turn in turns}


def _jump(rows: Sequence[Any], turn: Any, reverted: Sequence[int], added: int) -> Jump | None:
    # A response and the messages after it are first read by the next call.
    entered = [*_around_response(rows, turn.index - 1)[1], *_around_response(rows, turn.index)[0]]
    if not entered:
        return None
    largest = max(entered, key=lambda row: row.tokens)
    callers = (
        row for row in reversed(rows) if row.position < largest.position and row.role == Role.ASSISTANT
    )
    before = next(callers, None)
    is_output = largest.role != Role.ASSISTANT and before is not None and bool(before.tool_name)
    return Jump(
        turn=turn.index,
        growth=turn.grown,
        is_shortened=turn.grown < turn.pushed,
        position=largest.position,
        tokens=largest.tokens,
        role=largest.role,
        tool=before.tool_name if is_output and before is not None else largest.tool_name,
        is_output=is_output,
        reverted=reverted if turn.grown - turn.pushed > largest.tokens else (),
        preamble_tokens=added if added > largest.tokens else 0,
    )


def _around_response(rows: Sequence[Any], turn: int) -> tuple[list[Any], list[Any]]:
    """Return the messages of a turn before the model's response, and the response with those after it."""
    messages = [row for row in rows if row.turn_index == turn]
    at = next((n for n, row in enumerate(messages) if row.role == Role.ASSISTANT), len(messages))
    return messages[:at], messages[at:]
