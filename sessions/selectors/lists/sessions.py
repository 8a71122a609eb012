"""Sessions of a project: lists, filters, one session and its sub-agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from django.db.models import Exists, OuterRef

from accounts.models import Project
from sessions.models import AgentSession, SavedView, Star
from sessions.models.session import RECORDED
from sessions.selectors.comments import comment_counts
from sessions.selectors.custom_prices import custom_prices
from sessions.selectors.lists.filters import (
    NEWEST,
    ORDERS,
    Cursor,
    SessionFilter,
    page_after,
    sessions_filtered,
)
from sessions.selectors.lists.tree import Descendants, descendants_sum
from sessions.selectors.savings import SessionSavings, session_savings
from sessions.store.postgres import rows_fetch

#: The list shows "1,000+" above this: an exact count would take too long.
COUNT_LIMIT = 1_000
#: Number of sessions from which tags are suggested.
_MAX_TAGGED = 1_000
#: Number of sessions whose agents and models can be chosen: a scan of all sessions would take too long.
MAX_FACETED = 10_000

_AGENTS_AND_MODELS: LiteralString = """
SELECT DISTINCT agent, model FROM (
    SELECT agent, model FROM agent_sessions_agentsession WHERE project_id = %(project)s
     ORDER BY last_active_at DESC, id DESC LIMIT %(limit)s
) newest
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """One row of the session list."""

    session: AgentSession
    descendants: Descendants | None
    savings: SessionSavings | None
    comments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionsPage:
    """One page of the session list."""

    rows: Sequence[SessionRow]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """The values to choose from in the filters of a project."""

    agents: Sequence[str]
    models: Sequence[str]


def sessions_list(
    *,
    project: Project,
    filters: SessionFilter,
    after: Cursor | None = None,
    order: str = NEWEST,
    limit: int = 50,
) -> SessionsPage:
    """Return one page of the project's sessions, in one of `ORDERS`. Five queries.

    Only the order `activity` uses an index; the others sort all sessions that match.
    """
    rows = page_after(sessions_filtered(filters, project_id=project.pk), after, order)
    # Selects the ids first, so that Postgres sorts only these and not whole rows.
    related = AgentSession.objects.filter(pk__in=rows.values("pk")[: limit + 1])
    found = list(page_after(related.select_related("parent", "profile"), None, order))
    page = found[:limit]
    last = page[-1] if len(found) > limit else None
    ids = [session.pk for session in page]
    descendants, comments = descendants_sum(project_id=project.pk, roots=ids), comment_counts(ids)
    compacted = [session.pk for session in page if session.compaction_count]
    savings = session_savings(compacted, prices=custom_prices(project))
    return SessionsPage(
        rows=[
            SessionRow(
                session=session,
                descendants=descendants.get(session.pk),
                savings=savings.get(session.pk),
                comments=comments.get(session.pk, 0),
            )
            for session in page
        ],
        next_cursor=Cursor(at=getattr(last, ORDERS[order]), id=last.pk).encode() if last else None,
    )


def sessions_values(
    *, project: Project, filters: SessionFilter, columns: Sequence[str], after: Cursor | None, limit: int
) -> list[dict[str, Any]]:
    """Return columns of the project's sessions, the most recently active first. One query.

    This takes a fraction of the time of `sessions_list`, which reads whole rows.
    """
    rows = page_after(sessions_filtered(filters, project_id=project.pk), after)
    # Selects the ids first, so that Postgres sorts only these and not whole rows.
    found = AgentSession.objects.filter(pk__in=rows.values("pk")[:limit])
    return list(page_after(found, None).values(*columns))


def sessions_search(*, project: Project, text: str, limit: int) -> Sequence[AgentSession]:
    """Return sessions that contain all words of `text`, including sub-agents. One query.

    The last word may be the beginning of a word in their messages, unless a space follows it.
    """
    rows = sessions_filtered(SessionFilter(text=text, sub_agents=True), project_id=project.pk)
    return list(page_after(rows, None)[:limit])


def sessions_count(*, project: Project, filters: SessionFilter) -> int:
    """Return the number of sessions that match, at most `COUNT_LIMIT` + 1."""
    rows = sessions_filtered(filters, project_id=project.pk)
    return rows.order_by()[: COUNT_LIMIT + 1].count()


def sessions_facets(*, project: Project) -> Facets:
    """Return the agents and models of the project's newest sessions. One query."""
    rows = rows_fetch(_AGENTS_AND_MODELS, {"project": project.pk, "limit": MAX_FACETED})
    agents, models = {agent for agent, _ in rows}, {model for _, model in rows}
    return Facets(agents=sorted(agents - {""}), models=sorted(models - {""}))


def sessions_tags(*, project: Project) -> list[str]:
    """Return the tags of the project's newest sessions, sorted by name."""
    newest = AgentSession.objects.filter(project=project).exclude(tags=[]).order_by("-last_active_at")
    return sorted({tag for tags in newest.values_list("tags", flat=True)[:_MAX_TAGGED] for tag in tags})


def sessions_metadata_keys(*, project: Project) -> list[str]:
    """Return the metadata keys of the project's newest sessions, sorted by name."""
    newest = AgentSession.objects.filter(project=project).exclude(metadata={}).order_by("-last_active_at")
    return sorted({key for each in newest.values_list("metadata", flat=True)[:_MAX_TAGGED] for key in each})


def saved_views(*, project: Project, user: Any, page: str = SavedView.Page.SESSIONS) -> list[SavedView]:
    """Return the user's saved views of the project."""
    return list(SavedView.objects.filter(project=project, user=user, page=page).order_by("name"))


def sessions_newer(*, project: Project, filters: SessionFilter, since: datetime) -> int:
    """Return the number of sessions active after a time, at most 100."""
    rows = sessions_filtered(filters, project_id=project.pk).filter(last_active_at__gt=since)
    return rows.order_by()[:100].count()


def session_get(*, project: Project, id: UUID, user_id: int) -> AgentSession | None:
    """Return a session by its id, or None. `is_starred` indicates whether the user has starred it."""
    rows = AgentSession.objects.filter(project=project, pk=id).select_related("parent", "profile")
    stars = Star.objects.filter(session=OuterRef("pk"), user_id=user_id)
    return rows.annotate(is_starred=Exists(stars)).first()


def connected_session_newest(*, project: Project) -> AgentSession | None:
    """Return the most recently active session with calls that an agent, the gateway or telemetry reported.

    Returns None if there is none.
    """
    rows = AgentSession.objects.filter(project=project, origin__in=RECORDED, turn_count__gt=0)
    return rows.order_by("-last_active_at", "-id").first()


def session_children(*, session: AgentSession) -> Sequence[AgentSession]:
    """Return the sub-agents that the session started, oldest first."""
    return list(session.children.filter(project_id=session.project_id).order_by("started_at", "id"))
