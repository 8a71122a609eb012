"""What the beat derives of sessions costs as much as has moved, however many sessions rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Project
from sessions.models import AgentSession, Compaction, RollupCursor, SessionProfile
from sessions.selectors.moved import sessions_moved
from sessions.services.profiles import profiles_refresh
from sessions.services.rollups import rollups_fill

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def resting(project: Project, number: int) -> AgentSession:
    """A session made and last active so many days ago."""
    at = timezone.now() - (number + 1) * DAY
    return AgentSession(
        id=UUID(int=(int(at.timestamp() * 1_000) << 80) + number),
        project=project,
        external_id=f"s{number}",
        format="openai",
        last_active_at=at,
        turn_count=1,
    )


@pytest.fixture
def many(project: Project) -> list[AgentSession]:
    """Sessions that rest, with all that is derived of them."""
    made = AgentSession.objects.bulk_create(resting(project, number) for number in range(3_000))
    RollupCursor.objects.bulk_create(RollupCursor(session=session, turns=1) for session in made)
    SessionProfile.objects.bulk_create(
        SessionProfile(session=session, turn_count=1, edits_revision=0, grade="A", score=100)
        for session in made
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return made


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


@pytest.mark.parametrize("derive", [profiles_refresh, rollups_fill])
def test_a_pass_reads_no_session_that_rests(derive: Callable[[], int], many: list[AgentSession]) -> None:
    AgentSession.objects.filter(pk=many[7].pk).update(last_active_at=timezone.now(), turn_count=2)
    with CaptureQueriesContext(connection) as queries:
        assert derive() == 1
    [asked] = [query["sql"] for query in queries if "agent_sessions_compaction" in query["sql"]][:1]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {asked}")
        plan = json.loads(json.dumps(cursor.fetchone()[0]))[0]["Plan"]
    read = [
        (node["Relation Name"], node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
        for node in nodes(plan)
        if "Relation Name" in node
    ]
    assert {name for name, _ in read} >= {"agent_sessions_agentsession", "accounts_project"}
    assert max(rows for _, rows in read) <= 2, read


@pytest.mark.parametrize("derive", [profiles_refresh, rollups_fill])
def test_what_no_clock_tells_is_found_by_a_pass_over_all(
    derive: Callable[..., int], many: list[AgentSession]
) -> None:
    AgentSession.objects.filter(pk=many[7].pk).update(turn_count=2)
    assert derive() == 0
    assert derive(everywhere=True) == 1
    assert derive(everywhere=True) == 0


def test_active_made_and_compacted_sessions_have_moved(project: Project) -> None:
    rest, active, compacted = AgentSession.objects.bulk_create(
        resting(project, number) for number in range(3)
    )
    made = project.agent_sessions.create(
        external_id="made", format="openai", last_active_at=timezone.now() - DAY
    )
    AgentSession.objects.filter(pk=active.pk).update(last_active_at=timezone.now())
    for session, at in ((compacted, timezone.now()), (rest, rest.last_active_at)):
        Compaction.objects.create(
            session=session, number=1, trigger="user", turn_index=0, snapshot_position=0, finished_at=at
        )
    moved = set(sessions_moved(timezone.now() - timedelta(hours=1)).values_list("pk", flat=True))
    assert moved == {active.pk, made.pk, compacted.pk}
