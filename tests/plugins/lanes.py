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
    "processes": {"browser", "_web_server", "_world", "image", "collected"},
    "trajectories": {"trajectories"},
}
#: Where child processes start. A hook for audit events would be called for everything else as well.
STARTS_A_PROCESS = [(subprocess.Popen, "__init__"), (os, "fork"), (os, "posix_spawn")]

#: The folders and files whose tests take longest, mostly waiting for processes.
LONGEST = {"background", "deploy", "running", "test_accessibility.py"}


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
    """Runs long tests first, so that no worker starts one while the others have finished."""

    @pytest.hookimpl(trylast=True)  # pytest-django sorts as well
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=self.rank)

    @staticmethod
    def rank(item: pytest.Item) -> int:
        if LONGEST & {item.path.parent.name, item.path.name}:
            return 0
        return 1 if item.get_closest_marker("browser") else 2


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ProcessGuard(), "process-guard")
    config.pluginmanager.register(LongestFirst(), "longest-first")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add the markers."""
    for item in items:
        for marker, fixtures in FIXTURES.items():
            if fixtures.intersection(getattr(item, "fixturenames", ())):
                item.add_marker(marker)
