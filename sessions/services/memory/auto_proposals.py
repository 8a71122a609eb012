"""Propose facts automatically from the memory of sessions that have become idle.

Every write to a memory stores a `ProposalScan`, which is deleted when the session has been scanned. A pass
that is lost or runs twice does no harm, and no pass reads sessions without changes.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from sessions.models import AgentSession, ProposalScan, SharedFact
from sessions.selectors.memory import facts
from sessions.selectors.memory.revisions import memory_latest, memory_notes
from sessions.services.memory.fact_observations import idle_time
from sessions.services.memory.proposals import facts_record, items_to_propose

log = logging.getLogger(__name__)

#: Maximum number of sessions per pass.
BATCH = 50

#: Maximum number of facts that are proposed automatically from one session.
MAX_FACTS = 20

#: Time until a session is scanned again after a failure.
_RETRY_AFTER = timedelta(minutes=10)


def proposal_scans_run() -> int:
    """Scan the sessions that have become idle. Returns their number."""
    pending = ProposalScan.objects.filter(scan_at__lte=timezone.now()).order_by("scan_at")
    return sum(map(_scan_safely, pending.values_list("pk", flat=True)[:BATCH]))


def _scan_safely(session_id: UUID) -> int:
    try:
        return _scan(session_id)
    except Exception:
        # A session that cannot be scanned must not block the others.
        log.exception("could not propose facts of session %s", session_id)
        ProposalScan.objects.filter(pk=session_id).update(scan_at=timezone.now() + _RETRY_AFTER)
        return 0


@transaction.atomic
def _scan(session_id: UUID) -> int:
    """Scan one session, unless it is locked by another pass or a writer, or is active again."""
    session = _locked(session_id)
    if session is None:
        return 0
    scans, idle_at = ProposalScan.objects.filter(pk=session_id), session.last_active_at + idle_time()
    if idle_at > timezone.now():
        scans.update(scan_at=idle_at)
        return 0
    count, _ = scans.delete()
    if count and session.project.memory_proposals:
        _propose(session)
    return count


def _locked(session_id: UUID) -> AgentSession | None:
    rows = AgentSession.objects.select_for_update(no_key=True, skip_locked=True, of=("self",))
    return rows.select_related("project").filter(pk=session_id).first()


def _propose(session: AgentSession) -> None:
    row = memory_latest(session_id=session.pk)
    if row is None:
        return
    items = items_to_propose(memory_notes(row))
    facts_record(session=session, revision=row.number, items=items, max_new=_max_new(session))


def _max_new(session: AgentSession) -> int:
    """Return how many new facts may be proposed: there is a limit per session and one per project."""
    of_session = MAX_FACTS - SharedFact.objects.filter(session=session).count()
    of_project = facts.MAX_PENDING - facts.facts_pending_count(project_id=session.project_id)
    return max(min(of_session, of_project), 0)
