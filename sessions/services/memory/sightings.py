"""Facts in the sessions that had them: which go stale or are taken out there, and what to look at later."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from compaction.memory import Author, Notes
from compaction.memory.origins import keys
from sessions.models import AgentSession, FactSighting, ProposalWatch
from sessions.services.memory.sameness import digest_of

_WHO = {Author.PERSON: "a person", Author.MODEL: "the model", Author.HARNESS: "the harness"}


def sightings_follow(*, session: AgentSession, number: int, notes: Notes, author: Author) -> None:
    """Notes what a new revision of the session's memory says of the facts that it had."""
    rows = list(FactSighting.objects.filter(session=session))
    if not rows:
        return
    held = {digest_of(item): notes.origin(name, item).stale for name, item in keys(notes.memory)}
    resolved = {digest_of(item) for _, item in notes.resolved}
    changed = []
    for row in rows:
        before, digest = (row.stale, row.left), bytes(row.digest)
        if digest in held:
            row.stale, row.left = held[digest], ""
        elif not row.left:
            done = "resolved" if digest in resolved else "taken out"
            row.left = f"{done} by {_WHO[author]} in revision {number}"
        if (row.stale, row.left) != before:
            changed.append(row)
    FactSighting.objects.bulk_update(changed, ["stale", "left"])


def rest() -> timedelta:
    """How long a session has no turn until it has come to rest."""
    return timedelta(seconds=settings.CONTEXTAPP_MEMORY_REST_SECONDS)


def proposals_wait(*, session: AgentSession) -> None:
    """Somebody wrote to the session's memory: it is looked at for proposals once it rests."""
    ProposalWatch.objects.bulk_create(
        [ProposalWatch(session=session, due_at=timezone.now() + rest())],
        update_conflicts=True,
        unique_fields=["session"],
        update_fields=["due_at"],
    )
