"""Rows that workers derive from a generated session: tool outputs and their sums, and the profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from bench.store_tables import Row, row_of
from compaction.tools.usage import ToolUse
from sessions.models import AgentSession, SessionProfile, ToolOutputs, ToolRollup, ToolScan
from sessions.services.sessions.profiles import sparkline


@dataclass(slots=True, kw_only=True)
class ToolRows:
    """The tool outputs of a session, one per turn, and their sums by day."""

    _uses: list[ToolUse] = field(default_factory=list)
    _sums: dict[tuple[Any, str], ToolRollup] = field(default_factory=dict)

    def add(
        self, session: AgentSession, *, position: int, turn: int, tool: str, tokens: int, at: datetime
    ) -> None:
        use = ToolUse(tool=tool, position=position, part=0, turn=turn, tokens=tokens, is_output=True)
        self._uses.append(replace(use, is_error=turn % 29 == 0))
        key = (at.astimezone(UTC).date(), tool)
        made = ToolRollup(project_id=session.project_id, session_id=session.pk, day=key[0], tool=tool)
        row = self._sums.setdefault(key, made)
        row.calls, row.outputs = row.calls + 1, row.outputs + 1
        row.call_tokens, row.output_tokens = row.call_tokens + 50, row.output_tokens + tokens
        row.errors, row.cost_microusd = row.errors + (turn % 29 == 0), row.cost_microusd + tokens
        if tokens > row.largest_tokens:
            row.largest_tokens, row.largest_position = tokens, position

    def outputs(self, session_id: UUID) -> Iterator[Row]:
        return ({"session_id": session_id, **block} for block in _output_blocks(self._uses))

    def rollups(self) -> Iterator[Row]:
        return map(row_of, self._sums.values())


def _output_blocks(outputs: Sequence[ToolUse]) -> Iterator[Row]:
    """Yield the columns of `ToolOutputs` for outputs of a session in order, without its id."""
    for number, block in groupby(outputs, key=lambda use: use.position // ToolOutputs.MESSAGES):
        uses = list(block)
        yield {
            "number": number,
            "positions": [use.position for use in uses],
            "turns": [use.turn for use in uses],
            "tools": [use.tool for use in uses],
            "tokens": [use.tokens for use in uses],
            "errors": [use.is_error for use in uses],
        }


def scan_row(session: AgentSession, context: dict[str, int]) -> Row:
    """Return the progress of counting tools: all messages are counted."""
    position, last = session.message_count, session.turn_count - 1
    return row_of(ToolScan(session_id=session.pk, position=position, context=context, charged_turn=last))


def profile_row(session: AgentSession, sizes: Sequence[int], at: datetime) -> Row:
    score = 95 - session.pk.int % 60
    profile = SessionProfile(
        session_id=session.pk,
        turn_count=session.turn_count,
        edits_revision=session.edits_revision,
        sparkline=sparkline(sizes),
        score=score,
        grade="ABCDF"[min((99 - score) // 15, 4)],
        updated_at=at,
    )
    return row_of(profile)
