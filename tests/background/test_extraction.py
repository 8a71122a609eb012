"""Memory extraction with real workers that are killed."""

from __future__ import annotations

from threading import Event

import pytest

from tests.background.world import World, eventually
from tests.provider.behaviours import delayed, operation, operations

A_QUEUE = operation("add", "we evict by a queue")


@pytest.fixture(scope="module")
def reading_key(shared_world: World) -> str:
    """A separate project with an extraction model, without data of other tests."""
    make = (
        "from accounts.services.api_keys import *; from accounts.services.projects import *; "
        "project = project_create(name='Reading', slug='reading'); "
        "print(api_key_create(project=project, name='tests', scopes=['push', 'read', 'admin'])[1])"
    )
    return shared_world.instance.manage("shell", "-v0", "-c", make).strip()


@pytest.fixture
def reading_world(world: World, reading_key: str) -> World:
    reading = World(world.instance, world.provider, reading_key)
    world.provider.otherwise = operations(A_QUEUE)
    assert reading.call("PATCH", "memory/settings/", {"upkeep": True, "model": "claude-haiku-4-5"})[0] == 200
    return reading


def decisions(world: World, session: str) -> list[str]:
    found: list[str] = world.call("GET", f"sessions/{session}/memory/")[1]["memory"].get("decisions", [])
    return found


def request_count(world: World, words: str) -> int:
    """Return how many requests contained these words."""
    return sum(words in request.body["messages"][0]["content"] for request in world.provider.requests)


def push(world: World, words: str) -> str:
    session = world.session()
    body = {"messages": [{"role": "user", "content": words}]}
    assert world.call("POST", f"sessions/{session}/turns/", body)[0] == 201
    return session


def test_an_idle_session_is_extracted_automatically(reading_world: World) -> None:
    session = push(reading_world, "Mend the pool")
    eventually(lambda: decisions(reading_world, session) == ["we evict by a queue"])
    [row] = reading_world.rows(
        """SELECT r.state, r.requests, r.cost_microusd FROM agent_sessions_memoryextraction r
             JOIN agent_sessions_agentsession s ON s.id = r.session_id WHERE s.external_id = %s""",
        session,
    )
    assert (row["state"], row["requests"]) == ("done", 1)
    assert row["cost_microusd"] > 0


def test_a_worker_killed_during_extraction_loses_nothing(reading_world: World) -> None:
    go_on = Event()
    reading_world.provider.otherwise = delayed(operations(A_QUEUE), go_on)
    session = push(reading_world, "Mend the queue")
    eventually(lambda: request_count(reading_world, "Mend the queue"))
    reading_world.kill("contextapp.worker")
    go_on.set()
    eventually(lambda: decisions(reading_world, session) == ["we evict by a queue"])
    data = reading_world.call("GET", f"sessions/{session}/memory/upkeep/")[1]["reading"]
    assert (data["turn"], data["told"], data["next_try_at"]) == (1, None, None)
    assert request_count(reading_world, "Mend the queue") == 2
