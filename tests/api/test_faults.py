"""An instance started like `make run` with a durable database. Its processes are killed under load, and
every acknowledged turn is stored exactly once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import requests

from tests.api.load import assert_all_stored_once, run_concurrently, write
from tests.running.instance import Instance, children, running

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux", reason="finds the processes under /proc"),
]

WRITERS, TURNS = 6, 40


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    folder = tmp_path_factory.mktemp("faults")
    with running(Instance(folder / "home", folder / "output")) as instance:
        yield instance


def key_of(instance: Instance) -> str:
    return (Path(instance.home) / "api-key").read_text().strip()


def kill(instance: Instance, part: str, number: signal.Signals, *, maximum: int = 99) -> None:
    """Send the signal to the processes whose command line contains `part`."""
    found = [pid for pid, command in children(instance.process.pid).items() if part in command]
    assert found
    for pid in sorted(found)[:maximum]:
        os.kill(pid, number)


def kill_web(instance: Instance) -> None:
    kill(instance, "http_server web", signal.SIGKILL)


def stop_postgres_hard(instance: Instance) -> None:
    """Shut down immediately: without a checkpoint, so that the next start recovers from the log."""
    data = Path(instance.home) / "postgres" / "postmaster.pid"
    os.kill(int(data.read_text().splitlines()[0]), signal.SIGQUIT)


@pytest.mark.parametrize("fault", [kill_web, stop_postgres_hard])
def test_everything_acknowledged_is_stored_once(
    instance: Instance, fault: Callable[[Instance], None]
) -> None:
    url, key, name = f"http://127.0.0.1:{instance.port}", key_of(instance), fault.__name__
    headers = {"Authorization": f"Bearer {key}"}
    body = {"id": name, "budget": {"input_tokens": 2_000}}
    requests.post(f"{url}/api/v1/sessions/", json=body, headers=headers, timeout=30).raise_for_status()

    def strike() -> None:
        session = f"{url}/api/v1/sessions/{name}/"
        while requests.get(session, headers=headers, timeout=30).json()["turns"] < 2 * WRITERS:
            time.sleep(0.02)
        fault(instance)

    striker = threading.Thread(target=strike, daemon=True)
    striker.start()
    done = run_concurrently([partial(write, url, key, name, f"w{n}", TURNS) for n in range(WRITERS)])
    striker.join()
    assert done.retries > 0, "the fault came too late to be felt"
    assert len(done.answers) == WRITERS * TURNS
    assert_all_stored_once(url, key, name, done.answers)
    served = requests.get(f"{url}/api/v1/sessions/{name}/prompt/", headers=headers, timeout=30)
    assert served.json()["fits"] is True
