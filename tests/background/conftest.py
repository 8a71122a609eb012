"""The shared instance with a working provider, and a provider for tests of services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sessions.selectors import summarizers
from tests.background.world import World, eventually
from tests.provider.behaviours import summary
from tests.provider.server import FakeProvider


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


@pytest.fixture
def provider(settings: Any) -> Iterator[FakeProvider]:
    """The provider that the services of the test call."""
    with FakeProvider() as provider:
        settings.CONTEXTAPP_ANTHROPIC_API_KEY = "key of the tests"
        settings.CONTEXTAPP_ANTHROPIC_BASE_URL = provider.url
        settings.CONTEXTAPP_SUMMARIZER_BACKOFF = 0.01
        summarizers.summarizer.cache_clear()
        yield provider
        summarizers.summarizer.cache_clear()
