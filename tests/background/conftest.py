"""One instance for all background tests, with intervals of seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.background.world import OTHER_BROKER, SETTINGS, World, eventually
from tests.provider.behaviours import summary
from tests.provider.server import FakeProvider
from tests.running.instance import Instance, running


@pytest.fixture(scope="session")
def _world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    if sys.platform != "linux":
        pytest.skip("finds the processes in /proc")
    folder = tmp_path_factory.mktemp("background")
    with FakeProvider() as provider:
        broker = {"CELERY_BROKER_URL": OTHER_BROKER} if OTHER_BROKER else {}
        settings = SETTINGS | broker | {"ANTHROPIC_BASE_URL": provider.url}
        with running(Instance(folder / "home", folder / "out", **settings)) as instance:
            yield World(instance, provider)


@pytest.fixture
def world(_world: World) -> Iterator[World]:
    """Return the instance with a working provider. After the test, nothing may be open, lost or repeated."""
    _world.provider.otherwise = summary()
    _world.provider.requests.clear()
    eventually(_world.is_ready)
    yield _world
    _world.provider.otherwise = summary()
    _world.forget_upgrades()
    eventually(_world.all_settled)
    _world.assert_sound()
