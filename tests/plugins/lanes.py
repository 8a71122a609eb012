"""Mark the tests that need a browser or child processes, so that `make check` can leave them out.

A test gets the marker from the fixtures it uses. A test that starts a process without any of these
fixtures declares `@pytest.mark.processes` itself; without the marker, starting a process fails.
"""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

#: The fixtures that imply each marker. Fixtures that depend on these are covered as well.
FIXTURES = {
    "browser": {"browser"},
    "processes": {"browser", "_web_server", "shared_world", "image", "collected"},
    "trajectories": {"trajectories"},
}
#: Where child processes start. A hook for audit events would be called for everything else as well.
STARTS_A_PROCESS = [(subprocess.Popen, "__init__"), (os, "fork"), (os, "posix_spawn")]

#: The folders and files whose tests wait for instances.
WAITING = {"background", "running", "test_instance.py", "test_process.py"}
SERVED = {"browser", "_web_server"}


class ProcessGuard:
    """Rejects child processes while a test without the `processes` marker runs. The database is exempt."""

    def __init__(self) -> None:
        self.test: str | None = None
        for owner, name in STARTS_A_PROCESS:
            setattr(owner, name, self.guarded(getattr(owner, name)))

    def guarded(self, start: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(start)
        def checked(*arguments: Any, **options: Any) -> Any:
            if self.test is not None:
                pytest.fail(f"{self.test} starts a process: mark it with @pytest.mark.processes")
            return start(*arguments, **options)

        return checked

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.test = None if item.get_closest_marker("processes") else item.nodeid
        try:
            return (yield)
        finally:
            self.test = None

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
        test = self.test
        if fixturedef.argname == "servers":
            self.test = None
        try:
            return (yield)
        finally:
            self.test = test


class LongestFirst:
    """Runs long tests first, so that no worker starts one while the others have finished.

    Each worker of pytest-xdist begins with an equal share of the list, and later takes tests from the end of
    another's share. The first share begins with the tests that wait for instances, the second with those that
    use a web server or a browser: these start once, and rarely in another worker.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    @pytest.hookimpl(trylast=True)  # pytest-django sorts as well
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        waiting, served, others = ([item for item in items if lane(item) == each] for each in range(3))
        room = max(0, len(items) // self.workers - len(waiting)) if self.workers > 1 else 0
        items[:] = [*waiting, *others[:room], *served, *others[room:]]


def lane(item: pytest.Item) -> int:
    """Return 0 for tests that wait for instances, 1 for those that use a web server, and 2 for others."""
    if SERVED.intersection(getattr(item, "fixturenames", ())):
        return 1
    return 0 if WAITING & {item.path.parent.name, item.path.name} else 2


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ProcessGuard(), "process-guard")
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    config.pluginmanager.register(LongestFirst(workers), "longest-first")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add the markers."""
    for item in items:
        for marker, fixtures in FIXTURES.items():
            if fixtures.intersection(getattr(item, "fixturenames", ())):
                item.add_marker(marker)
