"""Fixtures for the tests of the core."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.plugins import examples  # noqa: F401  # loads the Hypothesis profile
from tests.plugins.transcripts import trajectories
from tests.provider.server import FakeProvider

__all__ = ["provider", "trajectories"]


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    """Return a fake of Anthropic's API that replies to every request with a valid summary by default."""
    with FakeProvider() as provider:
        yield provider
