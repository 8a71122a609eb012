"""Reads of the facts that sessions of a project share."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Prefetch, Q, QuerySet
from django.utils import timezone

from sessions.models import AgentSession, FactObservation, SharedFact
from sessions.selectors.memory import memory_latest, memory_value

#: Sessions by which a fact is told to be in doubt.
DOUBTS = 3

#: Proposals that wait for a review while a project's sessions propose nothing more by themselves.
MAX_PENDING = 500

#: Offers that one session is told of.
_OFFERS = 200


def facts_of(*, project_id: UUID) -> QuerySet[SharedFact]:
    """A project's facts, each with its newest doubtful observations in `doubts`."""
    doubtful = FactObservation.objects.exclude(stale="", removed="").select_related("session").order_by("-pk")
    doubts = Prefetch("observations", doubtful[:DOUBTS], to_attr="doubts")
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


def facts_pending_count(*, project_id: UUID) -> int:
    """How many proposals wait for a review; `MAX_PENDING` are as many as are counted."""
    rows = SharedFact.objects.filter(project=project_id, state=SharedFact.State.PROPOSED)
    return rows[:MAX_PENDING].count()


def facts_offered(*, session: AgentSession) -> list[SharedFact]:
    """The accepted facts that hold now, for the session's agent or for all, and that it does not have."""
    memory = memory_value(memory_latest(session_id=session.pk))
    rows = facts_of(project_id=session.project_id).filter(_holds_for(session)).order_by("-created_at")
    return [fact for fact in rows[:_OFFERS] if fact.text not in memory.items(fact.field)]


def facts_offered_count(*, session: AgentSession) -> int:
    """How many facts `facts_offered` has, without reading more of them than that takes."""
    latest = memory_latest(session_id=session.pk)
    rows = SharedFact.objects.filter(_holds_for(session), project=session.project_id)
    newest = rows.order_by("-created_at")[:_OFFERS]
    if latest is None:
        return newest.count()
    memory = memory_value(latest)
    return sum(text not in memory.items(field) for field, text in newest.values_list("field", "text"))


def _holds_for(session: AgentSession) -> Q:
    """Facts that are accepted and hold now, for the session's agent or for all."""
    return Q(
        Q(expires_at=None) | Q(expires_at__gt=timezone.now()),
        state=SharedFact.State.ACCEPTED,
        agent__in=("", session.agent),
    )
