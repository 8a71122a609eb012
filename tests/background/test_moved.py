"""The work of scheduled tasks depends on the active sessions only."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.db.models import Model, Sum
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Project
from sessions.models import AgentSession, Compaction, RollupCursor, SessionProfile, UsageRollup
from sessions.selectors.recent_activity import sessions_active_since
from sessions.services.sessions.profiles import profiles_refresh
from sessions.services.spending.rollups import VERSION, rollups_fill
from sessions.store.postgres import rows_copy
from tests.api.client import Api
from tests.api.talk import push, whole_turn
from tests.importers.logs import SESSION, block, jsonl, text, user
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)

LOG = [
    line | {"timestamp": f"2026-01-05T10:{minute:02}:00Z"}
    for minute, line in enumerate(
        [
            user("Fix the two files", "u1"),
            block("m1", text("The first is fixed."), "a1", output=9),
            user("Go on", "u2"),
            block("m2", text("Both are."), "a2", output=7),
            user("Thanks", "u3"),
            block("m3", text("Any time."), "a3", output=5),
        ]
    )
]


def resting(project: Project, number: int) -> AgentSession:
    """Return a session created and last active some days ago."""
    at = timezone.now() - (number + 1) * DAY
    return AgentSession(
        id=UUID(int=(int(at.timestamp() * 1_000) << 80) + number),
        project=project,
        external_id=f"s{number}",
        format="openai",
        last_active_at=at,
        turn_count=1,
    )


@reused
def idle(project: Project) -> AgentSession:
    """Create many idle sessions with all derived data, and return one of them."""
    made = [resting(project, number) for number in range(3_000)]
    derived = [
        *(RollupCursor(session=session, turns=1, version=VERSION) for session in made),
        *(
            SessionProfile(session=session, turn_count=1, edits_revision=0, grade="A", score=100)
            for session in made
        ),
    ]
    for table, rows in groupby([*made, *derived], key=lambda row: row._meta.db_table):
        rows_copy(table, [values(row) for row in rows])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return made[7]


def values(row: Model) -> dict[str, Any]:
    """By columns."""
    return {
        field.column: field.get_db_prep_save(getattr(row, field.attname), connection)
        for field in row._meta.concrete_fields
    }


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


@pytest.mark.slow
@pytest.mark.parametrize("derive", [profiles_refresh, rollups_fill])
def test_a_pass_reads_no_idle_session(derive: Callable[[], int], idle: AgentSession) -> None:
    AgentSession.objects.filter(pk=idle.pk).update(last_active_at=timezone.now(), turn_count=2)
    with CaptureQueriesContext(connection) as queries:
        assert derive() == 1
    [statement] = [query["sql"] for query in queries if "agent_sessions_compaction" in query["sql"]][:1]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
        plan = json.loads(json.dumps(cursor.fetchone()[0]))[0]["Plan"]
    read = [
        (node["Relation Name"], node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
        for node in nodes(plan)
        if "Relation Name" in node
    ]
    assert {name for name, _ in read} >= {"agent_sessions_agentsession", "accounts_project"}
    assert max(rows for _, rows in read) <= 2, read


@pytest.mark.slow
@pytest.mark.parametrize("derive", [profiles_refresh, rollups_fill])
def test_a_full_pass_finds_untimed_changes(derive: Callable[..., int], idle: AgentSession) -> None:
    AgentSession.objects.filter(pk=idle.pk).update(turn_count=2)
    assert derive() == 0
    assert derive(everywhere=True) == 1
    assert derive(everywhere=True) == 0


@pytest.mark.django_db(transaction=True)
class TestUntimedChanges:
    """Derived data is updated immediately, not by the next pass."""

    @pytest.mark.slow
    def test_a_log_that_is_imported_again(self, api_key: str) -> None:
        api, turns = Api(api_key), []
        for lines in (LOG[:2], LOG):
            log = jsonl(*lines).data
            [stored] = api.post(f"imports/?name={SESSION}.jsonl", log).json()["sessions"]
            if not turns:
                assert profiles_refresh() == rollups_fill() == 1
            turns.append(AgentSession.objects.get(pk=stored["id"]).turn_count)
        assert turns == [1, 3]
        assert SessionProfile.objects.get().turn_count == 3
        assert UsageRollup.objects.aggregate(all=Sum("turns"))["all"] == 3

    @pytest.mark.slow
    def test_a_compaction_that_is_reverted(self, api_key: str) -> None:
        api = Api(api_key)
        api.post("sessions/", {"id": "s1", "format": "anthropic", "budget": {"input_tokens": 8_000}})
        for number in range(8):
            push(api, whole_turn(number))
        assert api.post("sessions/s1/compact/", {}).json()["state"] == "done"
        profiles_refresh()
        assert api.post("sessions/s1/compactions/1/revert/").status_code == 200
        session = AgentSession.objects.get()
        assert session.edits_revision == 2
        assert SessionProfile.objects.get().edits_revision == 2


def test_recent_sessions_were_active_created_or_compacted(project: Project) -> None:
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
    moved = set(sessions_active_since(timezone.now() - timedelta(hours=1)).values_list("pk", flat=True))
    assert moved == {active.pk, made.pk, compacted.pk}
