"""The use of tools by a session, or by the sessions of a project in a period."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from django.db.models import F, QuerySet, Sum

from accounts.models import Project
from compaction.tools.usage import server_of
from sessions.models import AgentSession, ToolFile, ToolRollup

#: Files that a session reads repeatedly, per page.
FILES_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    """The use of one tool. `tool` is "" for outputs without a known call.

    `largest_session` and `largest_position` identify the message with its largest output.
    """

    tool: str
    calls: int
    call_tokens: int
    outputs: int
    output_tokens: int
    errors: int
    repeats: int
    repeat_tokens: int
    cost_microusd: int
    largest_tokens: int
    largest_position: int
    largest_session: UUID

    @property
    def server(self) -> str:
        return server_of(self.tool)

    @property
    def tokens(self) -> int:
        return self.call_tokens + self.output_tokens

    @property
    def average(self) -> int:
        """The tokens of an average output."""
        return round(self.output_tokens / self.outputs) if self.outputs else 0


#: The attribute by which each order sorts, largest first.
ORDERS: Mapping[str, str] = {
    "tokens": "output_tokens",
    "calls": "calls",
    "average": "average",
    "largest": "largest_tokens",
    "errors": "errors",
    "repeats": "repeat_tokens",
    "cost": "cost_microusd",
}

_SUMS = (
    "calls", "call_tokens", "outputs", "output_tokens", "errors", "repeats", "repeat_tokens", "cost_microusd",
)  # fmt: skip


def session_tools(*, session: AgentSession, order: str = "tokens") -> list[ToolRow]:
    """Return the tools of a session. Two queries over its sums, which are few."""
    return _rows(ToolRollup.objects.filter(session=session), order)


def project_tools(*, project: Project, first: date | None, order: str) -> list[ToolRow]:
    """Return the tools of the project's sessions from the day `first` (UTC) on. Two queries."""
    found = ToolRollup.objects.filter(project=project)
    if first is not None:
        found = found.filter(day__gte=first)
    return _rows(found, order)


def tool_names(*, session: AgentSession) -> list[tuple[str, int]]:
    """Return the tools of a session with the number of their outputs, the most used first. One query."""
    rows = ToolRollup.objects.filter(session=session, outputs__gt=0).exclude(tool="")
    sums = rows.values("tool").annotate(count=Sum("outputs")).order_by("-count", "tool")
    return list(sums.values_list("tool", "count")[:40])


def repeated_files(*, session: AgentSession) -> Sequence[ToolFile]:
    """Return the files that the session read more than once, by the tokens of all outputs."""
    found = ToolFile.objects.filter(session=session, reads__gt=1)
    return list(found.order_by("-tokens", "path")[:FILES_SHOWN])


def is_counting(*, session: AgentSession) -> bool:
    """Return whether the newest messages of a session are not counted yet."""
    position = (
        AgentSession.objects.filter(pk=session.pk).values_list("tool_scan__position", flat=True).first()
    )
    return session.message_count > (position or 0)


def _rows(found: QuerySet[ToolRollup], order: str) -> list[ToolRow]:
    sums = found.values("tool").annotate(**{f"sum_{name}": Sum(name) for name in _SUMS})
    largest = _largest(found)
    found_sums: Iterable[Any] = sums.order_by("tool")
    rows = [
        ToolRow(
            tool=row["tool"],
            **{name: row[f"sum_{name}"] for name in _SUMS},
            **largest[row["tool"]],
        )
        for row in found_sums
    ]
    return sorted(rows, key=lambda row: -getattr(row, ORDERS[order]))


def _largest(found: QuerySet[ToolRollup]) -> Mapping[str, Mapping[str, Any]]:
    """Return the largest output of each tool."""
    rows = found.order_by("tool", F("largest_tokens").desc(), "pk").distinct("tool")
    return {
        tool: {"largest_tokens": tokens, "largest_position": position, "largest_session": session}
        for tool, tokens, position, session in rows.values_list(
            "tool", "largest_tokens", "largest_position", "session_id"
        )
    }
