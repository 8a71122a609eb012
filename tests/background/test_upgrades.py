"""Recap upgrades: waiting recaps do not block others."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Project
from compaction.policy import Policy
from sessions.models import AgentSession, Compaction, Edit, PromptSnapshot
from sessions.services.compactions.recap_upgrades import recap_upgrades_queue

pytestmark = pytest.mark.django_db

AGO = timedelta(hours=2)
MANY = 25

Stuck = Callable[[AgentSession, Project], None]


@pytest.fixture(autouse=True)
def key(settings: Any) -> None:
    settings.CONTEXTAPP_ANTHROPIC_API_KEY = "key of the tests"


def waiting(project: Project, name: str, ago: timedelta) -> Compaction:
    """Create a compaction in an idle session whose deterministic recap awaits a model's."""
    session = project.agent_sessions.create(
        external_id=name, format="openai", last_active_at=timezone.now() - ago, message_count=2
    )
    row = Compaction.objects.create(
        session=session,
        number=1,
        state=Compaction.State.DONE,
        trigger="soft",
        turn_index=0,
        snapshot_position=2,
        policy=Policy().to_json(),
        awaits_upgrade=True,
        finished_at=timezone.now() - ago,
    )
    edit = Edit.objects.create(
        compaction=row,
        session=session,
        ordinal=0,
        strategy="recap",
        op="evict",
        position=0,
        end=1,
        tokens_before=10,
        tokens_after=1,
    )
    PromptSnapshot.objects.create(session=session, compaction_number=1, data=b"", edits=[edit.pk])
    return row


def breaker_open(session: AgentSession, project: Project) -> None:
    session.failures, session.failed_at = Policy().max_failures, timezone.now()
    session.save()


def no_model(session: AgentSession, project: Project) -> None:
    project.summarizer_model = "off"
    project.save()


def under_way(session: AgentSession, project: Project) -> None:
    session.compactions.create(number=2, trigger="user", turn_index=0, snapshot_position=2)


@pytest.mark.slow
@pytest.mark.parametrize("stuck", [breaker_open, no_model, under_way])
def test_waiting_recaps_do_not_block_others(stuck: Stuck, project: Project, other_project: Project) -> None:
    for number in range(MANY):
        stuck(waiting(project, f"s{number}", AGO).session, project)
    able = waiting(other_project, "able", AGO / 2)
    assert recap_upgrades_queue() == 1
    [made] = Compaction.objects.filter(trigger="upgrade")
    assert made.upgrades == able
    assert recap_upgrades_queue() == 0


@pytest.mark.slow
def test_a_pass_handles_a_limited_number(project: Project) -> None:
    for number in range(MANY):
        waiting(project, f"s{number}", AGO)
    assert [recap_upgrades_queue(), recap_upgrades_queue(), recap_upgrades_queue()] == [20, 5, 0]


def test_a_failure_in_the_future_does_not_open_the_breaker(project: Project) -> None:
    """The clock was set back since."""
    session = waiting(project, "s", AGO).session
    session.failures, session.failed_at = Policy().max_failures, timezone.now() + timedelta(hours=2)
    session.save()
    assert recap_upgrades_queue() == 1
