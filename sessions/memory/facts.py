"""Facts between sessions: proposed from a memory, decided by a person, offered to new sessions, pruned.

Nothing is carried by itself. A fact that was accepted is offered, and stands in a session's memory only when
somebody takes it there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.models import Project
from accounts.services import audit_record
from compaction.errors import WorkingMemoryError
from compaction.memory import Author, Notes, Via
from compaction.memory.operations import Op, Operation
from compaction.memory.schema import SINGLE
from compaction.memory.upkeep.own import STATE
from sessions.models import AgentSession, MemoryRevision, SharedFact
from sessions.selectors.memory import memory_latest, memory_notes, memory_schema
from sessions.services.memory import Writer, memory_operate

#: How long an accepted fact holds unless somebody confirms it or says otherwise.
LIFETIME = timedelta(days=90)

#: Proposals that nobody decided on for so long are pruned.
UNDECIDED = timedelta(days=30)

#: Characters of a fact.
LONGEST = 1_000

#: Fields that tell of one session's work, and mean nothing in another.
_OF_ONE_SESSION = SINGLE | {"important_files", "recent_edits", "next", "blockers", "open_questions", STATE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    field: str
    text: str


def facts_propose(*, session: AgentSession, items: Sequence[Item] | None = None) -> list[SharedFact]:
    """Proposes items of a session's memory; without `items` all that a model or a person wrote and that may
    hold elsewhere. What was proposed before is confirmed instead, what was rejected stays so.

    Raises `WorkingMemoryError` for an item that the memory does not have.
    """
    row = memory_latest(session_id=session.pk)
    notes = memory_notes(row)
    wanted = _proposable(notes) if items is None else [_held(notes, item) for item in items]
    return [_proposed(session, row, item) for item in wanted if row is not None]


def _proposable(notes: Notes) -> list[Item]:
    return [
        Item(field=name, text=item)
        for (name, item), origin in notes.origins.items()
        if name not in _OF_ONE_SESSION
        and origin.via not in (Via.UPKEEP, Via.SHARED)
        and not origin.stale
        and len(item) <= LONGEST
    ]


def _held(notes: Notes, item: Item) -> Item:
    if item.text not in notes.memory.items(item.field) or item.field in SINGLE or len(item.text) > LONGEST:
        raise WorkingMemoryError("items", f"{item.field} has no item {item.text[:80]!r} that can be shared")
    return item


def _proposed(session: AgentSession, row: MemoryRevision, item: Item) -> SharedFact:
    now = timezone.now()
    fact, created = SharedFact.objects.get_or_create(
        project_id=session.project_id,
        agent=session.agent,
        digest=_digest(item.text),
        defaults={"field": item.field, "text": item.text, "session": session, "revision": row.number},
    )
    if not created:
        fact.confirmed_at = now
        fact.save(update_fields=["confirmed_at"])
    return fact


@transaction.atomic
def fact_decide(
    *,
    fact: SharedFact,
    state: str | None = None,
    text: str | None = None,
    expires_at: datetime | None = None,
    user: Any = None,
) -> None:
    """Accepts, rejects or rewords a fact. Accepting confirms it, and it holds until `expires_at`, else for
    `LIFETIME`. Raises `WorkingMemoryError` where another fact says the same."""
    if text is not None and text.strip() != fact.text:
        _reword(fact, text.strip())
    if state is not None:
        fact.state = state
    now = timezone.now()
    fact.decided_at, fact.confirmed_at, fact.decided_by = now, now, user
    if fact.state == SharedFact.State.ACCEPTED:
        fact.expires_at = expires_at or now + LIFETIME
    fact.save()
    audit_record(action=f"memory.fact.{fact.state}", project=fact.project, user=user, target=str(fact.pk))


def _reword(fact: SharedFact, text: str) -> None:
    digest = _digest(text)
    same = SharedFact.objects.filter(project=fact.project_id, agent=fact.agent, digest=digest)
    if not text or len(text) > LONGEST or same.exclude(pk=fact.pk).exists():
        raise WorkingMemoryError("text", f"must be new, and have 1 to {LONGEST:,} characters")
    fact.text, fact.digest = text, digest


def facts_prune(*, project: Project, user: Any = None) -> int:
    """Deletes what has expired and what nobody decided on; how many. Rejected ones stay, so that they are
    not proposed again."""
    count, _ = facts_prunable(project=project).delete()
    if count:
        audit_record(action="memory.facts.pruned", project=project, user=user, detail={"count": count})
    return count


def facts_prunable(*, project: Project) -> QuerySet[SharedFact]:
    now = timezone.now()
    expired = Q(state=SharedFact.State.ACCEPTED, expires_at__lte=now)
    forgotten = Q(state=SharedFact.State.PROPOSED, confirmed_at__lte=now - UNDECIDED)
    return SharedFact.objects.filter(expired | forgotten, project=project)


def facts_page(
    *,
    project_id: UUID,
    state: str | None = None,
    agent: str | None = None,
    after: UUID | None = None,
    limit: int,
) -> list[SharedFact]:
    """A project's facts, newest first, all older than `after`."""
    rows = SharedFact.objects.filter(project_id=project_id).select_related("session")
    if state is not None:
        rows = rows.filter(state=state)
    if agent is not None:
        rows = rows.filter(agent__in=("", agent))
    if after is not None:
        rows = rows.filter(pk__lt=after)
    return list(rows.order_by("-pk")[:limit])


def facts_offered(*, session: AgentSession) -> list[SharedFact]:
    """The accepted facts that hold now, for the session's agent or for all, and that it does not have."""
    memory = memory_notes(memory_latest(session_id=session.pk)).memory
    rows = SharedFact.objects.filter(
        Q(expires_at=None) | Q(expires_at__gt=timezone.now()),
        project_id=session.project_id,
        state=SharedFact.State.ACCEPTED,
        agent__in=("", session.agent),
    )
    return [fact for fact in rows.order_by("-created_at")[:200] if fact.text not in memory.items(fact.field)]


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


def _digest(text: str) -> bytes:
    return hashlib.blake2b(" ".join(text.lower().split()).encode(), digest_size=16).digest()
