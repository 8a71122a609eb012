"""Facts that propose themselves: what was written in a session's memory, once the session has come to rest.

A row of `ProposalWatch` is the intent: it is written with the memory, and goes when the session was looked
at. So a pass that is lost or comes twice does no harm, and none reads a session without news.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from sessions.models import AgentSession, ProposalWatch, SharedFact
from sessions.selectors import facts
from sessions.selectors.memory import memory_latest, memory_notes
from sessions.services.memory.proposals import facts_say, items_unasked
from sessions.services.memory.sightings import rest

log = logging.getLogger(__name__)

#: Sessions that one pass looks at.
BATCH = 50

#: Facts of one session beyond which nothing more of it is proposed unasked.
MOST = 20

#: Until a session that could not be looked at is tried again.
_LATER = timedelta(minutes=10)


def proposals_make() -> int:
    """Looks at sessions that have come to rest; at how many."""
    due = ProposalWatch.objects.filter(due_at__lte=timezone.now()).order_by("due_at")
    return sum(map(_safely, due.values_list("pk", flat=True)[:BATCH]))


def _safely(session_id: UUID) -> int:
    try:
        return _look(session_id)
    except Exception:
        # One session that cannot be looked at must not hold up the others.
        log.exception("proposals of session %s", session_id)
        ProposalWatch.objects.filter(pk=session_id).update(due_at=timezone.now() + _LATER)
        return 0


@transaction.atomic
def _look(session_id: UUID) -> int:
    """One session. Of two passes at once one acts; a session that somebody writes to is not at rest."""
    session = _locked(session_id)
    if session is None:
        return 0
    watch, rests_at = ProposalWatch.objects.filter(pk=session_id), session.last_active_at + rest()
    if rests_at > timezone.now():
        watch.update(due_at=rests_at)
        return 0
    is_new, _ = watch.delete()
    if is_new and session.project.memory_proposals:
        _propose(session)
    return is_new


def _locked(session_id: UUID) -> AgentSession | None:
    rows = AgentSession.objects.select_for_update(no_key=True, skip_locked=True, of=("self",))
    return rows.select_related("project").filter(pk=session_id).first()


def _propose(session: AgentSession) -> None:
    row = memory_latest(session_id=session.pk)
    if row is None:
        return
    items = items_unasked(memory_notes(row))
    facts_say(session=session, revision=row.number, items=items, most=_room(session))


def _room(session: AgentSession) -> int:
    """How many new facts of the session are proposed: so many of one, and none while a project's review has
    enough to do."""
    of_session = MOST - SharedFact.objects.filter(session=session).count()
    of_project = facts.MAX_PENDING - facts.facts_pending_count(project_id=session.project_id)
    return max(min(of_session, of_project), 0)
