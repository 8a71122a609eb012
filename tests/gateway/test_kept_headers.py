"""The request headers that are stored with a recorded call."""

from __future__ import annotations

import pytest

from gateway.calls import kept_headers
from gateway.providers import PROVIDERS, Provider


class NotedHeaders(dict[str, str]):
    """No headers, with the names of those that were looked for."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def get(self, name: str, default: object = None) -> object:  # type: ignore[override]
        self.names.add(name)
        return default

    def __contains__(self, name: object) -> bool:
        self.names.add(str(name))
        return False


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)
def test_a_recorded_call_keeps_the_headers_that_identify_its_session(provider: Provider) -> None:
    headers = NotedHeaders()
    provider.identity(headers, {})
    assert "x-session-id" in headers.names
    assert kept_headers([(name.encode(), b"x") for name in headers.names]).keys() == headers.names
