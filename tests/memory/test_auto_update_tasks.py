"""Automatic memory updates by a worker after a push."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts.models import Project
from accounts.services.api_keys import api_key_create
from sessions.models import AgentSession, MemoryRevision, MemoryUpdateState
from sessions.services.dispatch import MEMORY_OBSERVE, MEMORY_UPDATE
from sessions.services.memory.auto_updates import memory_update, memory_updates_sweep
from tests.api.client import Api
from tests.background.world import eventually
from tests.compaction.builders import assistant, call, result, user
from tests.locking import in_thread, waiting
from tests.memory.conftest import MEMORY
from tests.plugins.reused import reused

pytestmark = pytest.mark.django_db

FAILS, PASSES = "FAILED tests/test_a.py::test_b - assert 1 == 2\n1 failed", "1 passed in 0.1s"

Ran = Callable[[str, str], None]


@reused
def stored(session: dict[str, Any]) -> UUID:
    return UUID(session["id"])


@reused
def upkeep_on(project: Project) -> None:
    Project.objects.filter(pk=project.pk).update(memory_upkeep=True)


class TestAfterAPush:
    def test_a_disabled_project_is_left_alone(
        self, ran: Ran, stored: UUID, other_project: Project, dispatched: list[tuple[str, str]]
    ) -> None:
        Project.objects.filter(pk=other_project.pk).update(memory_upkeep=True)
        other = Api(api_key_create(project=other_project, name="theirs")[1])
        kept = other.post("sessions/", {"id": "kept", "format": "openai"}).json()["id"]
        ran("pytest", FAILS)
        # Wake-ups are collected and sent in any order; those after a sent message are collected again.
        for times in (1, 2):
            other.post("sessions/kept/turns/", {"messages": [user("Mend it")]})
            eventually(lambda: dispatched.count((MEMORY_UPDATE, kept)) >= times)  # noqa: B023
        assert (MEMORY_UPDATE, str(stored)) not in dispatched
        assert memory_update(session_id=stored) == 0

    @pytest.mark.usefixtures("upkeep_on")
    def test_a_worker_updates_the_memory(self, api: Api, ran: Ran, dispatched: Any, stored: UUID) -> None:
        ran("pytest", FAILS)
        ran("ls", "a.py")
        eventually(lambda: (MEMORY_UPDATE, str(stored)) in dispatched)
        assert memory_update(session_id=stored) == 2
        shown = api.get(MEMORY).json()
        assert shown["memory"]["blockers"] == ["test fails: tests/test_a.py::test_b: assert 1 == 2"]
        assert (shown["author"], shown["turn"], shown["reason"]) == (
            "harness",
            0,
            "observed: blockers, state",
        )
        [blocker] = [item for item in shown["items"] if item["field"] == "blockers"]
        assert (blocker["via"], blocker["turn"], blocker["message"]) == ("upkeep", 0, 0)

    @pytest.mark.usefixtures("upkeep_on")
    def test_retried_pushes_and_repeated_tasks_do_no_harm(self, ran: Ran, stored: UUID) -> None:
        ran("pytest", FAILS)
        assert [memory_update(session_id=stored) for _ in range(3)] == [1, 0, 0]
        assert MemoryRevision.objects.count() == 1


@pytest.mark.usefixtures("upkeep_on")
class TestCatchingUp:
    def test_each_new_turn_creates_its_revision(self, api: Api, ran: Ran, stored: UUID) -> None:
        for output in (FAILS, PASSES, FAILS):
            ran("pytest", output)
        assert memory_update(session_id=stored) == 3
        steps = api.get(f"{MEMORY}timeline/").json()["data"]
        assert [(step["revision"], step["turn"]) for step in steps] == [(3, 2), (2, 1), (1, 0)]
        blockers = next(change for change in steps[1]["changes"] if change["field"] == "blockers")
        assert len(blockers["resolved"]) == 1

    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("others_read", [False, True])
    def test_an_update_is_based_on_concurrent_writes(
        self, api: Api, ran: Ran, stored: UUID, others_read: bool
    ) -> None:
        """A user changes the memory while a worker reads a turn. Another worker may read it and the next."""
        ran("pytest", FAILS)
        with ThreadPoolExecutor(1) as pool:
            with transaction.atomic():
                api.patch(f"{MEMORY}?author=person", {"decisions": ["mine"]}, if_match="*")
                worker = pool.submit(in_thread, partial(memory_update, session_id=stored))
                eventually(waiting)
                if others_read:
                    ran("pytest", FAILS)
                    assert memory_update(session_id=stored) == 2
            worker.result()
        memory = api.get(MEMORY).json()
        assert memory["memory"]["decisions"] == ["mine"]
        assert len(memory["memory"]["blockers"]) == 1
        assert memory["revision"] == 2
        assert MemoryUpdateState.objects.get(session_id=stored).turn == 1 + others_read

    @pytest.mark.slow
    def test_the_work_per_turn_does_not_grow_with_the_session(self, ran: Ran, stored: UUID) -> None:
        counts = []
        for _ in range(2):
            for _ in range(6):
                ran("pytest", FAILS)
                memory_update(session_id=stored)
            ran("pytest", PASSES)
            with CaptureQueriesContext(connection) as captured:
                memory_update(session_id=stored)
            counts.append(len(captured))
        assert counts[0] == counts[1] <= 20

    def test_the_sweep_dispatches_lost_work(self, ran: Ran, dispatched: Any, stored: UUID) -> None:
        ran("pytest", FAILS)
        eventually(lambda: dispatched)
        assert memory_updates_sweep() == 1
        assert dispatched[-1] == (MEMORY_UPDATE, str(stored))
        memory_update(session_id=stored)
        assert memory_updates_sweep() == 0

    def test_items_of_others_that_fill_the_memory_are_kept(self, api: Api, ran: Ran, stored: UUID) -> None:
        api.patch(MEMORY, {"decisions": ["word " * 1_400]}, if_match="*")
        ran("pytest", FAILS)
        memory_update(session_id=stored)
        assert api.get(MEMORY).json()["memory"]["blockers"] == []
        assert MemoryUpdateState.objects.get(session_id=stored).turn == 1

    def test_a_deleted_session_is_not_an_error(self, stored: UUID) -> None:
        AgentSession.objects.filter(pk=stored).delete()
        assert memory_update(session_id=stored) == 0


@pytest.mark.usefixtures("upkeep_on")
def test_an_imported_session_is_updated_too(
    api: Api, dispatched: list[tuple[str, str]], django_capture_on_commit_callbacks: Any
) -> None:
    chat = [user("Mend it"), call("c", "bash", command="pytest"), result("c", FAILS), assistant("One fails.")]
    with django_capture_on_commit_callbacks(execute=True):
        [stored] = api.post("imports/?name=chat.json", {"messages": chat}).json()["sessions"]
    assert (MEMORY_UPDATE, stored["id"]) in dispatched
    memory_update(session_id=UUID(stored["id"]))
    assert len(api.get(f"sessions/{stored['id']}/memory/").json()["memory"]["blockers"]) == 1


def test_users_can_request_an_update_if_updates_are_off(
    api: Api, ran: Ran, dispatched: list[tuple[str, str]], stored: UUID
) -> None:
    ran("pytest", FAILS)
    assert api.post(f"{MEMORY}upkeep/").status_code == 202
    assert [task for task, id in dispatched if id == str(stored)] == [MEMORY_OBSERVE]
    assert memory_update(session_id=stored, forced=True) == 1
