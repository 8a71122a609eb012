"""Reads of the facts that sessions of a project share."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Prefetch, Q, QuerySet
from django.utils import timezone

from sessions.models import AgentSession, FactSighting, SharedFact
from sessions.selectors.memory import memory_latest, memory_notes

#: Sessions by which a fact is told to be in doubt.
DOUBTS = 3

#: Offers that one session is told of.
_OFFERS = 200


def facts_of(*, project_id: UUID) -> QuerySet[SharedFact]:
    """A project's facts, each with its newest doubtful sightings in `doubts`."""
    doubtful = FactSighting.objects.exclude(stale="", left="").select_related("session").order_by("-pk")
    doubts = Prefetch("sightings", doubtful[:DOUBTS], to_attr="doubts")
    return SharedFact.objects.filter(project_id=project_id).select_related("session").prefetch_related(doubts)


def facts_page(
    *,
    project_id: UUID,
    state: str | None = None,
    agent: str | None = None,
    after: UUID | None = None,
    limit: int,
) -> list[SharedFact]:
    """A project's facts, newest first, all older than `after`."""
    rows = facts_of(project_id=project_id)
    if state is not None:
        rows = rows.filter(state=state)
    if agent is not None:
        rows = rows.filter(agent__in=("", agent))
    if after is not None:
        rows = rows.filter(pk__lt=after)
    return list(rows.order_by("-pk")[:limit])


def facts_review(*, project_id: UUID, state: str, limit: int) -> list[SharedFact]:
    """The facts of one state, those that most sessions had first."""
    return list(facts_of(project_id=project_id).filter(state=state).order_by("-seen_in", "-pk")[:limit])


def facts_offered(*, session: AgentSession) -> list[SharedFact]:
    """The accepted facts that hold now, for the session's agent or for all, and that it does not have."""
    memory = memory_notes(memory_latest(session_id=session.pk)).memory
    rows = facts_of(project_id=session.project_id).filter(
        Q(expires_at=None) | Q(expires_at__gt=timezone.now()),
        state=SharedFact.State.ACCEPTED,
        agent__in=("", session.agent),
    )
    return [
        fact for fact in rows.order_by("-created_at")[:_OFFERS] if fact.text not in memory.items(fact.field)
    ]
