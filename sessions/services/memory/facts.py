"""Facts shared between sessions: review, import into a session, and prune them.

`proposals` creates them. An accepted fact is only offered to other sessions; it enters a session's memory
when the agent or a user imports it.
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
from accounts.services.audit import audit_record
from compaction.errors import WorkingMemoryError
from compaction.memory.operations import Op, Operation
from compaction.memory.origins import Author, Via
from redaction import redact
from sessions.models import AgentSession, MemoryRevision, SharedFact
from sessions.selectors.memory.revisions import memory_schema
from sessions.selectors.redaction import redaction_for
from sessions.services.memory.fact_identity import facts_lock, normalized_text, text_digest
from sessions.services.memory.proposals import MAX_LENGTH
from sessions.services.memory.revisions import Writer, memory_operate

#: Time until an accepted fact expires, unless it is confirmed or has a different expiry date.
LIFETIME = timedelta(days=90)

#: Time after which undecided proposals are pruned.
UNDECIDED = timedelta(days=30)


class FactDeleted(LookupError):
    """The fact has been pruned in the meantime."""


@transaction.atomic
def fact_decide(
    *,
    fact: SharedFact,
    state: str | None = None,
    text: str | None = None,
    expires_at: datetime | None = None,
    actor: Actor = SYSTEM,
) -> None:
    """Accept, reject or reword a fact.

    An accepted fact is confirmed and valid until `expires_at`, by default for `LIFETIME`. Raises
    `WorkingMemoryError` if an equal fact exists, and `FactDeleted`.
    """
    if text is not None:
        facts_lock(project_id=fact.project_id, agent=fact.agent)
    _lock(fact)
    if text is not None and text.strip() != fact.text:
        _reword(fact, text)
    if state is not None:
        fact.state = state
    now = timezone.now()
    fact.decided_at, fact.confirmed_at, fact.decided_by = now, now, actor.user
    if fact.state == SharedFact.State.ACCEPTED:
        fact.expires_at = expires_at or now + LIFETIME
    # Not the whole row, because observations by other sessions may update it at the same time.
    decided = ("text", "digest", "state", "decided_at", "decided_by", "confirmed_at", "expires_at")
    fact.save(update_fields=decided)
    audit_record(
        action=f"memory.fact.{fact.state}",
        project=fact.project,
        actor=actor,
        target=str(fact.pk),
    )


def _lock(fact: SharedFact) -> None:
    """Lock the fact and read it again: another member may have decided since. Raises `FactDeleted`."""
    try:
        fact.refresh_from_db(from_queryset=SharedFact.objects.select_for_update(no_key=True))
    except SharedFact.DoesNotExist as error:
        raise FactDeleted from error


def _reword(fact: SharedFact, new: str) -> None:
    """Set the text of a locked fact. The caller has locked the facts of its agent."""
    text, _ = redact(new.strip(), redaction=redaction_for(fact.project_id))
    digest = text_digest(text)
    same = SharedFact.objects.filter(project=fact.project_id, agent=fact.agent, digest=digest)
    if not normalized_text(text) or len(text) > MAX_LENGTH or same.exclude(pk=fact.pk).exists():
        raise WorkingMemoryError("text", f"must be new and have 1 to {MAX_LENGTH:,} characters")
    fact.text, fact.digest = text, digest


@transaction.atomic
def facts_decide(*, project: Project, ids: Collection[UUID], state: str, actor: Actor = SYSTEM) -> int:
    """Accept or reject several facts of a project. Returns the number of facts that changed."""
    rows = SharedFact.objects.filter(project=project, pk__in=ids).exclude(state=state)
    facts = list(rows.select_related("project").select_for_update(of=("self",)).order_by("pk"))
    for fact in facts:
        fact_decide(fact=fact, state=state, actor=actor)
    return len(facts)


@transaction.atomic
def facts_prune(*, project: Project, actor: Actor = SYSTEM) -> int:
    """Delete expired facts and undecided old proposals. Returns their number.

    Rejected facts are kept, so that they are not proposed again.
    """
    # Lock facts before their observations, in the same order as proposals. A fact that is being confirmed is
    # kept.
    rows = facts_prunable(project=project).select_for_update().order_by("pk")
    ids = list(rows.values_list("pk", flat=True))
    SharedFact.objects.filter(pk__in=ids).delete()
    count = len(ids)
    if count:
        audit_record(action="memory.facts.pruned", project=project, actor=actor, detail={"count": count})
    return count


def facts_prunable(*, project: Project) -> QuerySet[SharedFact]:
    """Select the facts that `facts_prune` would delete."""
    now = timezone.now()
    expired = Q(state=SharedFact.State.ACCEPTED, expires_at__lte=now)
    undecided = Q(state=SharedFact.State.PROPOSED, confirmed_at__lte=now - UNDECIDED)
    return SharedFact.objects.filter(expired | undecided, project=project)


def facts_import(
    *, session: AgentSession, facts: Iterable[SharedFact], author: Author, user_id: int | None = None
) -> MemoryRevision | None:
    """Add offered facts to the session's memory. Raises as `memory_operate` does."""
    names = memory_schema(project_id=session.project_id).names
    operations = [
        Operation(op=Op.ADD, field=fact.field if fact.field in names else "decisions", item=fact.text)
        for fact in facts
    ]
    reason = f"{len(operations)} imported from shared memory"
    writer = Writer(author=author, via=Via.SHARED, reason=reason, user_id=user_id)
    return memory_operate(session=session, operations=operations, writer=writer)
