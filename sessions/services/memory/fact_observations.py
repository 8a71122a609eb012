"""Track shared facts in the memory of the sessions that contain them, and schedule scans for new facts."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from compaction.memory.origins import Author, Notes, keys
from sessions.models import AgentSession, FactObservation, ProposalScan
from sessions.services.memory.fact_identity import text_digest

_AUTHOR_LABELS = {Author.PERSON: "a user", Author.MODEL: "the model", Author.HARNESS: "the harness"}


def observations_refresh(*, session: AgentSession, number: int, notes: Notes, author: Author) -> None:
    """Update the session's observations after revision `number`: items that became stale or were removed."""
    rows = list(FactObservation.objects.filter(session=session))
    if not rows:
        return
    present = {text_digest(item): notes.origin(name, item).stale for name, item in keys(notes.memory)}
    resolved = {text_digest(item) for _, item in notes.resolved}
    changed = []
    for row in rows:
        before, digest = (row.stale, row.removed), bytes(row.digest)
        if digest in present:
            row.stale, row.removed = present[digest], ""
        elif not row.removed:
            verb = "resolved" if digest in resolved else "removed"
            row.removed = f"{verb} by {_AUTHOR_LABELS[author]} in revision {number}"
        if (row.stale, row.removed) != before:
            changed.append(row)
    FactObservation.objects.bulk_update(changed, ["stale", "removed"])


def idle_time() -> timedelta:
    """Return the time without a turn after which a session counts as idle."""
    return timedelta(seconds=settings.CONTEXTAPP_MEMORY_REST_SECONDS)


def proposal_scan_schedule(*, session: AgentSession) -> None:
    """Schedule a scan of the session's memory for facts to propose, once the session is idle."""
    ProposalScan.objects.bulk_create(
        [ProposalScan(session=session, scan_at=timezone.now() + idle_time())],
        update_conflicts=True,
        unique_fields=["session"],
        update_fields=["scan_at"],
    )
