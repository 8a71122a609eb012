"""Proposing facts from a session's memory: what is new waits for a review, what is known is confirmed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from compaction.errors import WorkingMemoryError
from compaction.memory import Author, Notes, Via
from compaction.memory.schema import SINGLE
from compaction.memory.updates.items import STATE
from sessions.models import AgentSession, FactSighting, SharedFact
from sessions.selectors.facts import facts_of
from sessions.selectors.memory import memory_latest, memory_notes
from sessions.services.memory.sameness import digest_of, plain_words, sameness_lock

#: Characters of a fact.
LONGEST = 1_000

#: Fields that tell of one session's work, and mean nothing in another.
_OF_ONE_SESSION = SINGLE | {"important_files", "recent_edits", "next", "blockers", "open_questions", STATE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item of a memory. `stale` says why it no longer holds, "" while it does."""

    field: str
    text: str
    stale: str = ""


@transaction.atomic
def facts_propose(*, session: AgentSession, items: Sequence[Item] | None = None) -> list[SharedFact]:
    """Proposes items of a session's memory because somebody asks; without `items` all that may hold elsewhere
    and that upkeep did not write. What was proposed before is confirmed instead, what was rejected stays so.

    Raises `WorkingMemoryError` for an item that the memory does not have.
    """
    locked = AgentSession.objects.select_for_update(no_key=True).get(pk=session.pk)
    row = memory_latest(session_id=locked.pk)
    notes = memory_notes(row)
    wanted = _proposable(notes) if items is None else [_held(notes, item) for item in items]
    if row is None:
        return []
    ids = facts_say(session=locked, revision=row.number, items=wanted, asked=True)
    facts = facts_of(project_id=locked.project_id).in_bulk(ids)
    return [facts[pk] for pk in ids]


def items_unasked(notes: Notes) -> list[Item]:
    """What is proposed without anybody asking: what a person or a model wrote, a person's first, then the
    latest."""
    wrote = [(notes.origin(item.field, item.text), item) for item in _proposable(notes)]
    wrote = [pair for pair in wrote if pair[0].author in (Author.PERSON, Author.MODEL)]
    wrote.sort(key=lambda pair: (pair[0].author is not Author.PERSON, -pair[0].turn))
    return [item for _, item in wrote]


def _proposable(notes: Notes) -> list[Item]:
    return [
        Item(field=name, text=item)
        for (name, item), origin in notes.origins.items()
        if name not in _OF_ONE_SESSION
        and origin.via not in (Via.UPKEEP, Via.SHARED)
        and not origin.stale
        and _can_be(item)
    ]


def _held(notes: Notes, item: Item) -> Item:
    is_there = item.field not in SINGLE and item.text in notes.memory.items(item.field)
    if not is_there or not _can_be(item.text):
        raise WorkingMemoryError("items", f"{item.field} has no item {item.text[:80]!r} that can be shared")
    return replace(item, stale=notes.origin(item.field, item.text).stale)


def _can_be(text: str) -> bool:
    return len(text) <= LONGEST and plain_words(text) != ""


def facts_say(
    *,
    session: AgentSession,
    revision: int,
    items: Sequence[Item],
    most: int | None = None,
    asked: bool = False,
) -> list[UUID]:
    """The ids of the facts that a revision of a session's memory says. New ones are proposed, at most `most`;
    known ones are confirmed, where the session had not said them before or somebody `asked`. The session is
    locked."""
    sameness_lock(project_id=session.project_id, agent=session.agent)
    told: dict[bytes, Item] = {}
    for item in items:
        told.setdefault(digest_of(item.text), item)
    facts = _known(session, told)
    new = [digest for digest in told if digest not in facts][:most]
    facts |= _proposed(session, revision, {digest: told[digest] for digest in new})
    found = {digest: facts[digest].pk for digest in told if digest in facts}
    sightings = {
        pk: FactSighting(
            fact_id=pk, session=session, revision=revision, digest=digest, stale=told[digest].stale
        )
        for digest, pk in found.items()
    }
    _see(session, sightings, asked)
    return list(sightings)


def _known(session: AgentSession, digests: Collection[bytes]) -> dict[bytes, SharedFact]:
    """The facts of the session's project and agent that say one of these now, or did when they were proposed.
    They are locked, in the order in which a review and a pruning lock them."""
    rows = SharedFact.objects.select_for_update(no_key=True).filter(
        Q(digest__in=digests) | Q(said__in=digests), project_id=session.project_id, agent=session.agent
    )
    facts = list(rows.order_by("pk"))
    return {bytes(fact.said): fact for fact in facts} | {bytes(fact.digest): fact for fact in facts}


def _proposed(session: AgentSession, revision: int, new: Mapping[bytes, Item]) -> dict[bytes, SharedFact]:
    """Writes proposals."""
    facts = {
        digest: SharedFact(
            project_id=session.project_id,
            agent=session.agent,
            field=item.field,
            text=item.text,
            digest=digest,
            said=digest,
            session=session,
            revision=revision,
        )
        for digest, item in new.items()
    }
    SharedFact.objects.bulk_create(facts.values())
    return facts


def _see(session: AgentSession, sightings: Mapping[UUID, FactSighting], asked: bool) -> None:
    """Notes the sightings, one a fact; a session counts once."""
    seen = FactSighting.objects.filter(session=session, fact__in=sightings)
    before = set(seen.values_list("fact_id", flat=True))
    FactSighting.objects.bulk_create(
        sightings.values(),
        update_conflicts=True,
        unique_fields=["fact", "session"],
        update_fields=["revision", "digest", "stale", "left"],
    )
    now = timezone.now()
    fresh = [pk for pk in sightings if pk not in before]
    SharedFact.objects.filter(pk__in=fresh).update(seen_in=F("seen_in") + 1, seen_at=now, confirmed_at=now)
    if asked:
        SharedFact.objects.filter(pk__in=before).update(confirmed_at=now)
