"""Fixtures of the core's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.provider.server import FakeProvider


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    """A double of Anthropic's API that answers every request with a valid summary, until it is told else."""
    with FakeProvider() as provider:
        yield provider
