"""Share the first collection between the workers of pytest-xdist.

Each worker collects all tests. In a new checkout, this also compiles them, which takes as long as everything
else. So each worker starts in another folder, and finds the rest compiled by the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]


class Rotated:
    """Sorts the tests as if their folders had been collected in order: all workers need the same list."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        items.sort(key=lambda item: item.path)
        return (yield)


def pytest_configure(config: pytest.Config) -> None:
    worker = getattr(config, "workerinput", None)
    if worker is None or [config.rootpath / each for each in config.args] != [TESTS]:
        return
    number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    files = sorted(path.relative_to(TESTS) for path in TESTS.rglob("test_*.py"))
    folders = list(dict.fromkeys(path.parts[0] for path in files))
    start = folders.index(files[len(files) * number // count].parts[0])
    config.args[:] = [str(TESTS / each) for each in folders[start:] + folders[:start]]
    config.pluginmanager.register(Rotated())
