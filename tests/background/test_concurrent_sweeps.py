"""Sweeps of several schedulers that run at the same time: each piece of work is dispatched once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import Project
from sessions.models import AgentSession, Compaction
from sessions.services.compactions.background import compactions_sweep
from sessions.services.dispatch import COMPACTION_RUN
from tests.locking import blocking
from tests.pages.transcripts import make_session, reading_turn

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

SWEEPS = 4


@pytest.mark.parametrize("state", [Compaction.State.PENDING, Compaction.State.RUNNING])
def test_a_lost_compaction_is_dispatched_once(
    project: Project, state: str, dispatched: list[tuple[str, str]]
) -> None:
    """Its message or its worker was lost."""
    session = make_session(project, [reading_turn(0, "words")])
    earlier = timezone.now() - timedelta(hours=1)
    lost = Compaction.objects.create(
        session=session, number=1, trigger="soft", turn_index=0, snapshot_position=0, state=state,
        attempts=1, lease_until=earlier, dispatched_at=earlier,
    )  # fmt: skip
    with blocking(*[compactions_sweep] * SWEEPS) as jobs:
        AgentSession.objects.select_for_update().get()
        Compaction.objects.select_for_update().get()
    assert sorted(job.result() for job in jobs) == [0] * (SWEEPS - 1) + [1]
    assert dispatched.count((COMPACTION_RUN, str(lost.pk))) == 1
    lost.refresh_from_db()
    assert (lost.state, lost.attempts) == (Compaction.State.PENDING, 1)
