"""The shared instance with a working provider."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.background.world import World, eventually
from tests.provider.behaviours import summary


@pytest.fixture
def world(shared_world: World) -> Iterator[World]:
    """Return the instance with a working provider. After the test, nothing may be open, lost or repeated."""
    shared_world.provider.otherwise = summary()
    shared_world.provider.requests.clear()
    eventually(shared_world.is_ready)
    yield shared_world
    shared_world.provider.otherwise = summary()
    shared_world.forget_upgrades()
    eventually(shared_world.all_settled)
    shared_world.assert_sound()
