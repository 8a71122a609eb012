"""Propose facts from a session's memory: new ones await review, known ones are confirmed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from compaction.errors import WorkingMemoryError
from compaction.memory.origins import Author, Notes, Via
from compaction.memory.schema import SINGLE
from compaction.memory.updates.items import STATE
from sessions.models import AgentSession, FactObservation, SharedFact
from sessions.selectors.memory.facts import facts_of
from sessions.selectors.memory.revisions import memory_latest, memory_notes
from sessions.services.memory.fact_identity import facts_lock, normalized_text, text_digest

#: Maximum number of characters of a fact.
MAX_LENGTH = 1_000

#: Fields about the work of one session, which are meaningless in others.
_OF_ONE_SESSION = SINGLE | {"important_files", "recent_edits", "next", "blockers", "open_questions", STATE}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem:
    """An item of a memory. `stale` is the reason why it is no longer valid, or "" if it is valid."""

    field: str
    text: str
    stale: str = ""


@transaction.atomic
def facts_propose(*, session: AgentSession, items: Sequence[MemoryItem] | None = None) -> list[SharedFact]:
    """Propose items of a session's memory on request.

    Without `items`, proposes every item that may be useful elsewhere and was not written by automatic
    updates. Facts that were proposed before are confirmed; rejected facts stay rejected. Raises
    `WorkingMemoryError` for an item that the memory does not contain.
    """
    locked = AgentSession.objects.select_for_update(no_key=True).get(pk=session.pk)
    row = memory_latest(session_id=locked.pk)
    notes = memory_notes(row)
    chosen = _proposable(notes) if items is None else [_find(notes, item) for item in items]
    if row is None:
        return []
    ids = facts_record(session=locked, revision=row.number, items=chosen, is_requested=True)
    facts = facts_of(project_id=locked.project_id).in_bulk(ids)
    return [facts[pk] for pk in ids]


def items_to_propose(notes: Notes) -> list[MemoryItem]:
    """Return the items to propose automatically: those of users, then those of models, newest first."""
    authors = (Author.PERSON, Author.MODEL)
    origins = {item: notes.origin(item.field, item.text) for item in _proposable(notes)}
    items = [item for item, origin in origins.items() if origin.author in authors]
    return sorted(items, key=lambda item: (authors.index(origins[item].author), -origins[item].turn))


def _proposable(notes: Notes) -> list[MemoryItem]:
    return [
        MemoryItem(field=name, text=item)
        for (name, item), origin in notes.origins.items()
        if name not in _OF_ONE_SESSION
        and origin.via not in (Via.AUTO_UPDATE, Via.SHARED)
        and not origin.stale
        and _is_valid(item)
    ]


def _find(notes: Notes, item: MemoryItem) -> MemoryItem:
    exists = item.field not in SINGLE and item.text in notes.memory.items(item.field)
    if not exists or not _is_valid(item.text):
        raise WorkingMemoryError("items", f"{item.field} has no item {item.text[:80]!r} that can be shared")
    return replace(item, stale=notes.origin(item.field, item.text).stale)


def _is_valid(text: str) -> bool:
    """Return whether a fact can have this text. Postgres accepts no NUL characters in it."""
    return len(text) <= MAX_LENGTH and "\0" not in text and normalized_text(text) != ""


def facts_record(
    *,
    session: AgentSession,
    revision: int,
    items: Sequence[MemoryItem],
    max_new: int | None = None,
    is_requested: bool = False,
) -> list[UUID]:
    """Record the facts in a revision of a session's memory, and return their ids.

    New facts are proposed, at most `max_new`. Known facts are confirmed if the session did not have them
    before, or if the proposal `is_requested` by a user or agent. The caller has locked the session.
    """
    facts_lock(project_id=session.project_id, agent=session.agent)
    by_digest: dict[bytes, MemoryItem] = {}
    for item in items:
        by_digest.setdefault(text_digest(item.text), item)
    facts = _known(session, by_digest)
    new = [digest for digest in by_digest if digest not in facts][:max_new]
    facts |= _create(session, revision, {digest: by_digest[digest] for digest in new})
    observations = {
        facts[digest].pk: FactObservation(
            fact=facts[digest], session=session, revision=revision, digest=digest, stale=item.stale
        )
        for digest, item in by_digest.items()
        if digest in facts
    }
    _store(session, observations, is_requested)
    return list(observations)


def _known(session: AgentSession, digests: Collection[bytes]) -> dict[bytes, SharedFact]:
    """Return and lock the facts whose current or first text has one of these digests.

    They are locked in the same order as by reviews and pruning.
    """
    rows = SharedFact.objects.select_for_update(no_key=True).filter(
        Q(digest__in=digests) | Q(proposed_digest__in=digests),
        project_id=session.project_id,
        agent=session.agent,
    )
    facts = list(rows.order_by("pk"))
    return {bytes(fact.proposed_digest): fact for fact in facts} | {
        bytes(fact.digest): fact for fact in facts
    }


def _create(session: AgentSession, revision: int, new: Mapping[bytes, MemoryItem]) -> dict[bytes, SharedFact]:
    """Create proposals."""
    facts = {
        digest: SharedFact(
            project_id=session.project_id,
            agent=session.agent,
            field=item.field,
            text=item.text,
            digest=digest,
            proposed_digest=digest,
            session=session,
            revision=revision,
        )
        for digest, item in new.items()
    }
    SharedFact.objects.bulk_create(facts.values())
    return facts


def _store(session: AgentSession, observations: Mapping[UUID, FactObservation], is_requested: bool) -> None:
    """Store one observation per fact, and count the session once for each."""
    known = FactObservation.objects.filter(session=session, fact__in=observations)
    before = set(known.values_list("fact_id", flat=True))
    FactObservation.objects.bulk_create(
        observations.values(),
        update_conflicts=True,
        unique_fields=["fact", "session"],
        update_fields=["revision", "digest", "stale", "removed"],
    )
    now = timezone.now()
    new = [pk for pk in observations if pk not in before]
    SharedFact.objects.filter(pk__in=new).update(seen_in=F("seen_in") + 1, seen_at=now, confirmed_at=now)
    if is_requested:
        SharedFact.objects.filter(pk__in=before).update(confirmed_at=now)
