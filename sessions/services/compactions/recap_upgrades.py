"""Replace each deterministic recap once with a model's recap, if the model was unavailable before.

A recap is replaced if the prompt still contains it, the session is recent, and the agent has paused for
longer than the provider caches prompts, so that changing the start of the prompt causes no extra cost. An
agent that does not pause gets the same result at its next compaction, whose summary continues this recap.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.models import Project
from compaction.adapters.tiktoken_counter import counter
from compaction.eviction import SHOWS_RECAP
from compaction.policy import Policy
from compaction.recap.spans import Summary
from compaction.triggers import requested
from sessions.models import AgentSession, Compaction, Recap
from sessions.selectors.summarizers import summarizer_missing
from sessions.services.compactions.apply import compaction_apply
from sessions.services.compactions.circuit_breaker import breaker_open_until
from sessions.services.compactions.lifecycle import compaction_in_progress, compaction_open
from sessions.services.compactions.planning import Loaded, edits_in_force
from sessions.services.compactions.recaps import RecapOrigin, ShownRecap, recap_plan
from sessions.services.compactions.summaries import SummaryAttempt

TRIGGER = requested.UPGRADE.name

#: Recaps of older compactions are not replaced.
_MAX_AGE = timedelta(days=1)
#: Maximum number of recaps per pass.
_BATCH = 20


def recap_upgrades_queue() -> int:
    """Queue compactions that replace recaps. Returns their number."""
    return sum(map(_queue, list(islice(_replaceable(), _BATCH))))


def _replaceable() -> Iterator[Compaction]:
    """Yield the compactions whose recaps a model may replace now, oldest first."""
    now = timezone.now()
    with_model = [project.pk for project in Project.objects.all() if not summarizer_missing(project)]
    rows = Compaction.objects.filter(
        awaits_upgrade=True,
        state=Compaction.State.DONE,
        finished_at__gt=now - _MAX_AGE,
        session__project__in=with_model,
        session__last_active_at__lt=now - timedelta(seconds=settings.CONTEXTAPP_UPGRADE_IDLE_SECONDS),
    ).exclude(session__compactions__state__in=Compaction.OPEN)
    for row in rows.select_related("session").defer(*Compaction.RECORD).order_by("finished_at").iterator():
        if breaker_open_until(row.session, Policy.from_json(row.policy)) is None:
            yield row


@transaction.atomic
def _queue(row: Compaction) -> bool:
    session = AgentSession.objects.select_for_update(skip_locked=True).filter(pk=row.session_id).first()
    if session is None or compaction_in_progress(session) is not None:
        return False
    policy = Policy.from_json(row.policy)
    if breaker_open_until(session, policy) is not None:
        return False
    if Compaction.objects.filter(pk=row.pk, awaits_upgrade=True).update(awaits_upgrade=False) == 0:
        return False
    if not row.edits.filter(strategy__in=SHOWS_RECAP, pk__in=edits_in_force(row.session_id)).exists():
        return False  # a later compaction continues it
    compaction_open(
        session=session,
        trigger=TRIGGER,
        state=Compaction.State.PENDING,
        policy=policy,
        reason=f"a model may improve the recap of compaction {row.number}",
        instructions=row.instructions,
        upgrades=row,
    )
    return True


def upgrade_apply(
    *, compaction: Compaction, loaded: Loaded, shown: ShownRecap, policy: Policy, attempt: SummaryAttempt
) -> None:
    """Replace the deterministic recap by the model's. The caller has locked the session."""
    assert attempt.result is not None
    plan = recap_plan(
        loaded,
        edit=shown.edit,
        recap=Summary.of(attempt.result.recap, shown.evicted, counter()).recap,
        policy=policy,
        trigger=TRIGGER,
        reason="a model's recap replaces a deterministic one",
    )
    origin = RecapOrigin(
        author=Recap.Author.MODEL,
        model=attempt.model,
        cost_microusd=attempt.cost_microusd,
        notes={**attempt.notes, "summary_used": True},
    )
    compaction_apply(compaction=compaction, loaded=loaded, plan=plan, origin=origin)
