"""Facts shared between the sessions of a project."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Count, Prefetch, Q, QuerySet
from django.utils import timezone

from compaction.memory.values import WorkingMemory
from sessions.models import AgentSession, FactObservation, SharedFact
from sessions.selectors.memory.revisions import memory_latest, memory_value

#: Number of doubts shown for a fact.
DOUBTS = 3

#: Maximum number of pending proposals: above it, sessions propose no further facts automatically.
MAX_PENDING = 500

#: Maximum number of facts offered to a session.
_MAX_OFFERS = 200


def facts_of(*, project_id: UUID) -> QuerySet[SharedFact]:
    """Return a project's facts, each with the newest observations that contradict it in `doubts`."""
    doubtful = FactObservation.objects.exclude(stale="", removed="").select_related("session").order_by("-pk")
    doubts = Prefetch("observations", doubtful[:DOUBTS], to_attr="doubts")
    return SharedFact.objects.filter(project_id=project_id).select_related("session").prefetch_related(doubts)


def facts_page(
    *,
    project_id: UUID,
    state: str | None,
    agent: str | None,
    after: UUID | None,
    limit: int,
) -> list[SharedFact]:
    """Return a page of a project's facts, newest first. `after` is the last fact of the previous page."""
    rows = facts_of(project_id=project_id)
    if state is not None:
        rows = rows.filter(state=state)
    if agent is not None:
        rows = rows.filter(agent__in=("", agent))
    if after is not None:
        rows = rows.filter(pk__lt=after)
    return list(rows.order_by("-pk")[:limit])


def facts_review(*, project_id: UUID, state: str, after: UUID | None, limit: int) -> list[SharedFact]:
    """Return a page of facts in one state, those found in most sessions first.

    `after` is the last fact of the previous page. If it was deleted, returns the first page.
    """
    rows = facts_of(project_id=project_id)
    last = rows.filter(pk=after).values_list("seen_in", flat=True).first() if after else None
    rows = rows.filter(state=state)
    if last is not None:
        rows = rows.filter(Q(seen_in__lt=last) | Q(seen_in=last, pk__lt=after))
    return list(rows.order_by("-seen_in", "-pk")[:limit])


def facts_count_by_state(*, project_id: UUID) -> dict[str, int]:
    """Return the number of facts in each state that has any."""
    rows = SharedFact.objects.filter(project=project_id).values_list("state")
    return dict(rows.annotate(Count("pk")).order_by())


def facts_pending_count(*, project_id: UUID) -> int:
    """Return the number of proposals awaiting review, at most `MAX_PENDING`."""
    rows = SharedFact.objects.filter(project=project_id, state=SharedFact.State.PROPOSED)
    return rows[:MAX_PENDING].count()


def facts_offered(*, session: AgentSession) -> list[SharedFact]:
    """Return accepted, unexpired facts for the session's agent that are not in its memory yet."""
    memory = memory_value(memory_latest(session_id=session.pk))
    rows = facts_of(project_id=session.project_id).filter(_applies_to(session)).order_by("-created_at")
    return [fact for fact in rows[:_MAX_OFFERS] if not _has(memory, fact.field, fact.text)]


def facts_offered_count(*, session: AgentSession) -> int:
    """Return the number of facts in `facts_offered`, reading only what counting needs."""
    latest = memory_latest(session_id=session.pk)
    rows = SharedFact.objects.filter(_applies_to(session), project=session.project_id)
    newest = rows.order_by("-created_at")[:_MAX_OFFERS]
    if latest is None:
        return newest.count()
    memory = memory_value(latest)
    return sum(not _has(memory, field, text) for field, text in newest.values_list("field", "text"))


def _has(memory: WorkingMemory, field: str, text: str) -> bool:
    """Return whether the memory contains a fact. Facts of a field that was deleted become decisions."""
    return text in memory.items(field) or text in memory.items("decisions")


def _applies_to(session: AgentSession) -> Q:
    """Return the filter for accepted, unexpired facts for the session's agent or for all agents."""
    return Q(
        Q(expires_at=None) | Q(expires_at__gt=timezone.now()),
        state=SharedFact.State.ACCEPTED,
        agent__in=("", session.agent),
    )
