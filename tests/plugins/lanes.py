"""Mark the tests that need a browser or child processes, so that `make check` can leave them out.

A test gets the marker from the fixtures it uses. A test that starts a process without any of these
fixtures declares `@pytest.mark.processes` itself; without the marker, starting a process fails.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

#: The fixtures that imply each marker. Fixtures that depend on these are covered as well.
FIXTURES = {
    "browser": {"browser"},
    "processes": {"browser", "_web_server", "_world", "image", "collected"},
    "trajectories": {"trajectories"},
}
STARTS_A_PROCESS = {"subprocess.Popen", "os.fork", "os.posix_spawn"}

#: The folders whose tests mostly wait for processes.
WAITING_FOLDERS = {"background", "running"}


class ProcessGuard:
    """Rejects child processes while a test without the `processes` marker runs. The database is exempt."""

    def __init__(self) -> None:
        self.test: str | None = None
        sys.addaudithook(self.check)

    def check(self, event: str, _arguments: object) -> None:
        if self.test is not None and event in STARTS_A_PROCESS:
            pytest.fail(f"{self.test} starts a process: mark it with @pytest.mark.processes")

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


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ProcessGuard(), "process-guard")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add the markers, and run the tests that wait for processes first: others fill the waiting time."""
    for item in items:
        for marker, fixtures in FIXTURES.items():
            if fixtures.intersection(getattr(item, "fixturenames", ())):
                item.add_marker(marker)
    items.sort(key=lambda item: item.path.parent.name not in WAITING_FOLDERS)
