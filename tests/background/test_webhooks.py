"""A worker sends webhooks in threads while it runs other tasks."""

from __future__ import annotations

import pytest

from tests.background.world import World, eventually
from tests.webhooks.receiver import receiver

pytestmark = pytest.mark.slow


def test_each_delivery_is_sent_once_while_the_worker_runs_other_tasks(world: World) -> None:
    """Celery disconnects from the database after each task, which must not affect the threads."""
    webhooks, sessions = 6, 3
    with receiver() as good:
        hook = {"url": good.url, "events": ["compaction.finished"]}
        hooks = [world.call("POST", "webhooks/", hook)[1]["id"] for _ in range(webhooks)]
        for _ in range(sessions):
            session = world.session()
            world.push(session, 0)
            assert world.call("POST", f"sessions/{session}/compact/", {})[0] in {200, 202}
        eventually(lambda: states(world) == ["sent"] * webhooks * sessions)
        assert len(good.heard) == webhooks * sessions
    world.rows("DELETE FROM agent_sessions_webhookdelivery")
    world.rows("DELETE FROM agent_sessions_webhook WHERE id = ANY(%s::uuid[])", hooks)


def states(world: World) -> list[str]:
    return [row["state"] for row in world.rows("SELECT state FROM agent_sessions_webhookdelivery")]
