"""The web server and the database are killed under load. Every acknowledged turn is stored exactly once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

from tests.api.load import assert_all_stored_once, run_concurrently, write
from tests.background.world import World

WRITERS, TURNS = 6, 20


def kill_web(world: World) -> None:
    world.kill("http_server web")


def stop_postgres_hard(world: World) -> None:
    """Shut down immediately: without a checkpoint, so that the next start recovers from the log."""
    os.kill(world.processes("bin/postgres")[0], signal.SIGQUIT)


@pytest.mark.parametrize("fault", [kill_web, stop_postgres_hard])
def test_everything_acknowledged_is_stored_once(world: World, fault: Callable[[World], None]) -> None:
    url, name = f"http://127.0.0.1:{world.instance.port}", world.session(budget=2_000)

    def strike() -> None:
        while world.call("GET", f"sessions/{name}/")[1]["turns"] < 2 * WRITERS:
            time.sleep(0.02)
        fault(world)

    striker = threading.Thread(target=strike, daemon=True)
    striker.start()
    done = run_concurrently([partial(write, url, world.key, name, f"w{n}", TURNS) for n in range(WRITERS)])
    striker.join()
    assert done.retries > 0, "the fault came too late to be felt"
    assert len(done.answers) == WRITERS * TURNS
    assert_all_stored_once(url, world.key, name, done.answers)
    assert world.prompt(name)["fits"] is True
