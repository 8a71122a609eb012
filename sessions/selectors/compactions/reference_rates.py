"""How often agents needed content that edits had removed: by strategy, tool or policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet
from django.db.models.fields.json import KeyTextTransform

from compaction.edits import Op
from compaction.provider_engine import NAME as PROVIDER
from compaction.provider_summary import ON_DEMAND
from compaction.referenced import How
from compaction.view.components import COMPONENT_OPS
from sessions.models import AgentSession, Compaction, Edit
from sessions.selectors.compactions.client_context import CLIENT
from sessions.selectors.samples import sample_sessions
from sessions.selectors.trends.sums import TrendQuery

#: Number of newest sessions from which the rates of a project are computed.
PROJECT_SESSIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """The number of edits of one kind, and of those whose content was referenced later.

    Later references are counted by how the agent reacted: `silent` (ignored it), `expanded` (retrieved it by
    its handle) or `read_again` (read the file again).
    """

    name: str
    edits: int
    silent: int
    expanded: int
    read_again: int

    @property
    def referenced(self) -> int:
        return self.silent + self.expanded + self.read_again

    @property
    def share(self) -> float:
        return self.referenced / self.edits if self.edits else 0.0


def rates_total(rates: Sequence[Rate]) -> Rate:
    """Return the sum of rates whose edits do not overlap."""
    return Rate(
        name="",
        edits=sum(rate.edits for rate in rates),
        silent=sum(rate.silent for rate in rates),
        expanded=sum(rate.expanded for rate in rates),
        read_again=sum(rate.read_again for rate in rates),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterReference:
    """An edit whose content was referenced later: in `turn`, by `text`."""

    number: int
    strategy: str
    position: int
    edited_turn: int
    turn: int
    text: str
    how: str

    @property
    def reaction(self) -> str:
        """How the agent reacted, for example, “re-read it”."""
        return REACTIONS[self.how]


#: Labels of an agent's reactions to missing content.
REACTIONS: Mapping[str, str] = {
    How.SILENT: "ignored it",
    How.EXPANDED: "expanded it",
    How.READ_AGAIN: "re-read it",
}

#: Maximum number of references that a page lists.
SHOWN = 50


def edits_of_session(session_id: UUID, *, compaction: int | None = None) -> QuerySet[Edit]:
    """Select the applied edits of a session that removed content, of one compaction or of all."""
    edits = Edit.objects.filter(session=session_id, compaction__state=Compaction.State.DONE)
    edits = edits.exclude(op__in=[*COMPONENT_OPS, Op.STRIP])
    return edits if compaction is None else edits.filter(compaction__number=compaction)


def edits_of_project(project_id: UUID, query: TrendQuery | None = None) -> QuerySet[Edit]:
    """Select the applied edits that removed content in the project's newest compacted sessions.

    `query` limits them to a period and its filters. Excludes what clients and providers removed.
    """
    newest = AgentSession.objects.filter(project=project_id, compaction_count__gt=0)
    applied = Edit.objects.filter(compaction__state=Compaction.State.DONE).exclude(
        strategy__in=(CLIENT, PROVIDER, ON_DEMAND)
    )
    if query is not None:
        start, end = query.span.bounds()
        newest = newest.filter(last_active_at__gte=start, **_session_filters(query))
        if query.sample:
            newest = newest.exclude(pk__in=sample_sessions(project_id))
        applied = applied.filter(compaction__finished_at__gte=start, compaction__finished_at__lt=end)
    ids = newest.order_by("-last_active_at", "-id").values_list("pk", flat=True)[:PROJECT_SESSIONS]
    return applied.filter(session__in=list(ids)).exclude(op__in=[*COMPONENT_OPS, Op.STRIP])


def _session_filters(query: TrendQuery) -> dict[str, Any]:
    """Return the lookups of the sessions that a query selects."""
    filters = {"agent": query.agent, "model": query.model, "created_by": query.member}
    lookups: dict[str, Any] = {name: value for name, value in filters.items() if value}
    return lookups | {"tags__contains": [query.tag]} if query.tag else lookups


def rates_by_strategy(edits: QuerySet[Edit]) -> list[Rate]:
    return _rates(edits, F("strategy"))


def rates_by_tool(edits: QuerySet[Edit]) -> list[Rate]:
    """Return the rates by tool whose output was edited. Evictions are excluded: they cover many messages."""
    return _rates(edits.exclude(tool=""), F("tool"))


def rates_by_policy(edits: QuerySet[Edit]) -> list[Rate]:
    return _rates(edits, KeyTextTransform("policy", "compaction__facts"))


def _rates(edits: QuerySet[Edit], by: F | KeyTextTransform) -> list[Rate]:
    counted = (
        edits.annotate(name=by)
        .values("name")
        .annotate(
            edits=Count("pk"),
            silent=Count("pk", filter=Q(referenced_how=How.SILENT)),
            expanded=Count("pk", filter=Q(referenced_how=How.EXPANDED)),
            read_again=Count("pk", filter=Q(referenced_how=How.READ_AGAIN)),
        )
    )
    rows = counted.values_list("name", "edits", "silent", "expanded", "read_again")
    rates = [
        Rate(name=name or "–", edits=edits, silent=silent, expanded=expanded, read_again=read_again)
        for name, edits, silent, expanded, read_again in rows
    ]
    return sorted(rates, key=lambda rate: (-rate.referenced, -rate.edits, rate.name))


def later_references(edits: QuerySet[Edit]) -> list[LaterReference]:
    """Return the edits whose content was referenced later, in the order of the references."""
    rows = edits.filter(referenced_turn__isnull=False).order_by("referenced_turn", "pk")
    values = rows.values_list(
        "compaction__number",
        "strategy",
        "position",
        "compaction__turn_index",
        "referenced_turn",
        "referenced_text",
        "referenced_how",
    )[:SHOWN]
    return [
        LaterReference(
            number=number,
            strategy=strategy,
            position=position,
            edited_turn=edited,
            turn=turn or 0,
            text=text,
            how=how,
        )
        for number, strategy, position, edited, turn, text, how in values
    ]
