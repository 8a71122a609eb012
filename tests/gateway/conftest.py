"""A gateway between a test and a scripted provider."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.double import Provider
from tests.gateway.running import Running


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as provider:
        yield provider


@pytest.fixture
def gateway(provider: Provider, tmp_path: Path, transactional_db: None) -> Iterator[Running]:
    with Running(upstream=provider.url, spool=tmp_path / "spool") as running:
        yield running
