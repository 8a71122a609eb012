"""The tools whose outputs fill the prompt, turn by turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import LiteralString

from django.db.models import F, Max, Sum
from psycopg.types.numeric import Int4

from compaction.edits import Op
from sessions.models import AgentSession, Compaction, Edit, ToolOutputs
from sessions.store.postgres import rows_fetch

#: Maximum number of tools to list; the others are combined.
MOST_TOOLS = 7
OTHERS, UNKNOWN = "other tools", "unknown tool"


@dataclass(slots=True, kw_only=True)
class _Change:
    """A compaction that keeps `kept` of the earlier outputs (None: all) and shortens some by `reduced`."""

    turn: int
    kept: dict[str, int] | None = None
    reduced: dict[str, int] = field(default_factory=dict)

    def apply(self, sizes: Mapping[str, int]) -> dict[str, int]:
        left = dict(sizes if self.kept is None else self.kept)
        return left | {tool: max(left.get(tool, 0) - tokens, 0) for tool, tokens in self.reduced.items()}


def tool_tokens_by_turn(
    *, session: AgentSession, turns: Sequence[int], totals: Sequence[int], cleared: Sequence[int]
) -> dict[str, list[int]]:
    """Return the tokens of the outputs in the prompt by tool, as one column for `turns`, largest tool first.

    `totals` are the tokens of all tool outputs in these prompts. They are divided in proportion to the
    outputs that no compaction has removed before the turn. `cleared` are the turns before which the client
    compacted its context. At most four queries.
    """
    if not any(totals):
        return {}
    new: list[dict[str, int]] = [{} for _ in turns]
    for at, tool, tokens in rows_fetch(
        _NEW, {"session": session.pk, "turns": list(map(Int4, turns)), "last": turns[-1]}
    ):
        new[at][tool or UNKNOWN] = tokens
    changes = [*_changes(session), *(_Change(turn=turn, kept={}) for turn in cleared)]
    pending = sorted(changes, key=lambda change: change.turn, reverse=True)
    sizes: dict[str, int] = {}
    shares: list[dict[str, int]] = []
    for turn, total, added in zip(turns, totals, new, strict=True):
        while pending and pending[-1].turn <= turn:
            sizes = pending.pop().apply(sizes)
        for tool, tokens in added.items():
            sizes[tool] = sizes.get(tool, 0) + tokens
        whole = sum(sizes.values())
        shares.append(
            {tool: round(total * tokens / whole) for tool, tokens in sizes.items()} if whole else {}
        )
    return _columns(shares)


def _columns(shares: Sequence[Mapping[str, int]]) -> dict[str, list[int]]:
    largest: dict[str, int] = {}
    for share in shares:
        for tool, tokens in share.items():
            largest[tool] = max(largest.get(tool, 0), tokens)
    ranked = sorted(filter(largest.get, largest), key=lambda tool: (-largest[tool], tool))
    shown, others = ranked[:MOST_TOOLS], ranked[MOST_TOOLS:]
    columns = {tool: [share.get(tool, 0) for share in shares] for tool in shown}
    if others:
        columns[OTHERS] = [sum(share.get(tool, 0) for tool in others) for share in shares]
    return columns


def _changes(session: AgentSession) -> list[_Change]:
    """Return the effects of contextapp's compactions on tool outputs."""
    if not session.compaction_count:
        return []
    edits = Edit.objects.filter(session=session, compaction__state=Compaction.State.DONE)
    turn = F("compaction__turn_index") + 1
    ends = list(edits.filter(op=Op.EVICT).values_list(turn).annotate(end=Max("end")))
    changes = {at: _Change(turn=at, kept={}) for at, _ in ends}
    for at, tool, tokens in _kept(session, ends):
        changes[at].kept = {**(changes[at].kept or {}), tool or UNKNOWN: tokens}
    shortened = edits.filter(op__in=[Op.REPLACE, Op.STRIP]).exclude(tool="")
    for at, tool, tokens in shortened.values_list(turn, "tool").annotate(
        tokens=Sum(F("tokens_before") - F("tokens_after"))
    ):
        changes.setdefault(at, _Change(turn=at)).reduced[tool] = tokens
    return list(changes.values())


def _kept(session: AgentSession, ends: Sequence[tuple[int, int]]) -> Sequence[tuple[int, str, int]]:
    if not ends:
        return ()
    turns, positions = ([Int4(value) for value in column] for column in zip(*ends, strict=True))
    messages = Int4(ToolOutputs.MESSAGES)
    return rows_fetch(_KEPT, {"session": session.pk, "turns": turns, "ends": positions, "messages": messages})


# The outputs of the turns up to each of the given turns, since the one before it.
_NEW: LiteralString = """
SELECT width_bucket(o.turn - 1, %(turns)s::int[]), o.tool, sum(o.tokens)::bigint
  FROM agent_sessions_tooloutputs b, unnest(b.turns, b.tools, b.tokens) AS o (turn, tool, tokens)
 WHERE b.session_id = %(session)s AND o.turn <= %(last)s
 GROUP BY 1, 2
"""

# The outputs after an evicted span and before the turn of its compaction.
_KEPT: LiteralString = """
SELECT span.turn, o.tool, sum(o.tokens)::bigint
  FROM unnest(%(turns)s::int[], %(ends)s::int[]) AS span (turn, "end")
  JOIN agent_sessions_tooloutputs b
    ON b.session_id = %(session)s AND b.number >= span."end" / %(messages)s AND b.turns[1] < span.turn
 CROSS JOIN unnest(b.positions, b.turns, b.tools, b.tokens) AS o (position, turn, tool, tokens)
 WHERE o.position > span."end" AND o.turn < span.turn
 GROUP BY 1, 2
"""
