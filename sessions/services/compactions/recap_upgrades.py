"""A deterministic recap that stands in for a model's is replaced by one, once, where that is worth it.

It is while the recap still shows, the session is still of use, and the agent has paused for longer than the
provider keeps its cache: rewriting what stands early in a prompt then costs nothing extra. An agent that does
not pause gets the same at its next compaction, whose summary folds this recap.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.models import Project
from compaction.eviction import SHOWS_RECAP
from compaction.policy import Policy
from compaction.triggers import upgrade
from sessions.models import AgentSession, Compaction, Recap
from sessions.selectors.summarizers import summarizer_missing
from sessions.services.compactions.apply import (
    Origin,
    compaction_apply,
    compaction_in_progress,
    compaction_queue,
)
from sessions.services.compactions.planning import Loaded, edits_in_force
from sessions.services.compactions.recaps import ShownRecap, recap_plan
from sessions.services.compactions.summaries import Attempt
from sessions.services.compactions.triggers import breaker_until

TRIGGER = upgrade.TRIGGER.name

#: Sessions that nobody has used for longer are left as they are.
_OF_USE = timedelta(days=1)
#: Recaps that one pass takes up.
_BATCH = 20


def recap_upgrades_queue() -> int:
    """Fires for the recaps that are worth it; how many are under way now."""
    return sum(map(_fire, list(islice(_ready(), _BATCH))))


def _ready() -> Iterator[Compaction]:
    """The recaps that a model may do better now, oldest first. One that has to wait holds up no other."""
    now = timezone.now()
    asking = [project.pk for project in Project.objects.all() if not summarizer_missing(project)]
    rows = Compaction.objects.filter(
        awaits_upgrade=True,
        state=Compaction.State.DONE,
        finished_at__gt=now - _OF_USE,
        session__project__in=asking,
        session__last_active_at__lt=now - timedelta(seconds=settings.CONTEXTAPP_UPGRADE_IDLE_SECONDS),
    ).exclude(session__compactions__state__in=Compaction.OPEN)
    for row in rows.select_related("session").defer("record").order_by("finished_at").iterator():
        if breaker_until(row.session, Policy.from_json(row.policy)) is None:
            yield row


@transaction.atomic
def _fire(row: Compaction) -> bool:
    session = AgentSession.objects.select_for_update(skip_locked=True).filter(pk=row.session_id).first()
    if session is None or compaction_in_progress(session) is not None:
        return False
    policy = Policy.from_json(row.policy)
    if breaker_until(session, policy) is not None:
        return False
    if Compaction.objects.filter(pk=row.pk, awaits_upgrade=True).update(awaits_upgrade=False) == 0:
        return False
    if not row.edits.filter(strategy__in=SHOWS_RECAP, pk__in=edits_in_force(row.session_id)).exists():
        return False  # a later compaction has folded it
    compaction_queue(
        session=session,
        trigger=TRIGGER,
        policy=policy,
        reason=f"a model may do better than the recap of compaction {row.number}",
        instructions=row.instructions,
        upgrades=row,
    )
    return True


def upgrade_apply(
    *, compaction: Compaction, loaded: Loaded, standing: ShownRecap, policy: Policy, attempt: Attempt
) -> None:
    """Shows the model's recap in the place of the deterministic one. The session is locked."""
    assert attempt.result is not None
    made = recap_plan(
        loaded,
        edit=standing.edit,
        recap=attempt.result.recap,
        policy=policy,
        trigger=TRIGGER,
        reason="a model's recap in the place of a deterministic one",
    )
    origin = Origin(
        author=Recap.Author.MODEL,
        model=attempt.model,
        cost_microusd=attempt.cost_microusd,
        notes={**attempt.notes, "summary_used": True},
    )
    compaction_apply(compaction=compaction, loaded=loaded, made=made, origin=origin)
