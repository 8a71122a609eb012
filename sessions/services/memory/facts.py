"""Facts between sessions: decided by a person, offered to new sessions, pruned; `proposals` brings them in.

Nothing is carried by itself. A fact that was accepted is offered, and stands in a session's memory only when
somebody takes it there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.actors import SYSTEM, Actor
from accounts.models import Project
from accounts.services import audit_record
from compaction.errors import WorkingMemoryError
from compaction.memory import Author, Via
from compaction.memory.operations import Op, Operation
from redaction import redact
from sessions.models import AgentSession, MemoryRevision, SharedFact
from sessions.selectors.memory import memory_schema
from sessions.selectors.redaction import redaction_for
from sessions.services.memory.proposals import LONGEST
from sessions.services.memory.sameness import digest_of, plain_words, sameness_lock
from sessions.services.memory.writing import Writer, memory_operate

#: How long an accepted fact holds unless somebody confirms it or says otherwise.
LIFETIME = timedelta(days=90)

#: Proposals that nobody decided on for so long are pruned.
UNDECIDED = timedelta(days=30)


class FactGone(LookupError):
    """The fact was pruned meanwhile."""


@transaction.atomic
def fact_decide(
    *,
    fact: SharedFact,
    state: str | None = None,
    text: str | None = None,
    expires_at: datetime | None = None,
    actor: Actor = SYSTEM,
) -> None:
    """Accepts, rejects or rewords a fact. Accepting confirms it, and it holds until `expires_at`, else for
    `LIFETIME`. Raises `WorkingMemoryError` where another fact says the same, and `FactGone`."""
    if text is not None and text.strip() != fact.text:
        _reword(fact, text)
    if state is not None:
        fact.state = state
    now = timezone.now()
    fact.decided_at, fact.confirmed_at, fact.decided_by = now, now, actor.user
    if fact.state == SharedFact.State.ACCEPTED:
        fact.expires_at = expires_at or now + LIFETIME
    # Not the whole row: another session may be seen to have the fact meanwhile.
    decided = ("text", "digest", "state", "decided_at", "decided_by", "confirmed_at", "expires_at")
    row = SharedFact.objects.filter(pk=fact.pk)
    if not row.update(**{name: getattr(fact, name) for name in decided}):
        raise FactGone
    audit_record(
        action=f"memory.fact.{fact.state}",
        project=fact.project,
        actor=actor,
        target=str(fact.pk),
    )


def _reword(fact: SharedFact, new: str) -> None:
    text, _ = redact(new.strip(), key=redaction_for(fact.project_id))
    digest = digest_of(text)
    sameness_lock(project_id=fact.project_id, agent=fact.agent)
    same = SharedFact.objects.filter(project=fact.project_id, agent=fact.agent, digest=digest)
    if not plain_words(text) or len(text) > LONGEST or same.exclude(pk=fact.pk).exists():
        raise WorkingMemoryError("text", f"must be new, and have 1 to {LONGEST:,} characters")
    fact.text, fact.digest = text, digest


@transaction.atomic
def facts_decide(*, project: Project, ids: Collection[UUID], state: str, actor: Actor = SYSTEM) -> int:
    """Accepts or rejects several facts of a project as they are; how many were not yet."""
    rows = SharedFact.objects.filter(project=project, pk__in=ids).exclude(state=state)
    facts = list(rows.select_related("project").select_for_update(of=("self",)).order_by("pk"))
    for fact in facts:
        fact_decide(fact=fact, state=state, actor=actor)
    return len(facts)


@transaction.atomic
def facts_prune(*, project: Project, actor: Actor = SYSTEM) -> int:
    """Deletes what has expired and what nobody decided on; how many. Rejected ones stay, so that they are
    not proposed again."""
    # Locked before their sightings, as proposals lock them: one that is confirmed just now is left alone.
    rows = facts_prunable(project=project).select_for_update().order_by("pk")
    ids = list(rows.values_list("pk", flat=True))
    SharedFact.objects.filter(pk__in=ids).delete()
    count = len(ids)
    if count:
        audit_record(action="memory.facts.pruned", project=project, actor=actor, detail={"count": count})
    return count


def facts_prunable(*, project: Project) -> QuerySet[SharedFact]:
    now = timezone.now()
    expired = Q(state=SharedFact.State.ACCEPTED, expires_at__lte=now)
    forgotten = Q(state=SharedFact.State.PROPOSED, confirmed_at__lte=now - UNDECIDED)
    return SharedFact.objects.filter(expired | forgotten, project=project)


def facts_take(
    *, session: AgentSession, facts: Iterable[SharedFact], author: Author
) -> MemoryRevision | None:
    """Puts offered facts into the session's memory. Raises as `memory_operate` does."""
    names = memory_schema(project_id=session.project_id).names
    operations = [
        Operation(op=Op.ADD, field=fact.field if fact.field in names else "decisions", item=fact.text)
        for fact in facts
    ]
    writer = Writer(author=author, via=Via.SHARED, reason=f"{len(operations)} taken from shared memory")
    return memory_operate(session=session, operations=operations, writer=writer)
