"""Keys while the store does not respond."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from accounts.models import Project
from accounts.services.api_keys import api_key_create, api_key_revoke
from accounts.services.gateway import gateway_update
from gateway import callers
from gateway.callers import Callers
from tests.asynchronous import run
from tests.gateway.double import Provider
from tests.gateway.running import Running

pytestmark = pytest.mark.django_db(transaction=True)


def down(*_: object, **__: object) -> None:
    raise OperationalError("the connection is closed")


def test_while_the_store_is_down_calls_reach_only_the_provider_of_their_project(
    provider: Provider, project: Project, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway has read all keys at its start. The project of a later one may have its own URL, too."""

    def call(key: str) -> tuple[int, str | None]:
        sent = {"x-contextapp-key": key, "x-api-key": "sk"}
        response = gateway.call("/anthropic/v1/models", None, sent, method="GET")
        return response.status, response.headers.get("x-contextapp")

    settings.CONTEXTAPP_GATEWAY_ALLOW_PRIVATE = True
    gateway_update(project=project, changes={"upstreams": {"anthropic": provider.url}})
    (revoked_row, revoked), (_, unused) = (api_key_create(project=project, name=name) for name in "ab")
    readers = [api_key_create(project=project, name=name, scopes=["read", "admin"])[1] for name in "de"]
    ended_row, ended = api_key_create(project=project, name="f")
    api_key_revoke(key=ended_row)
    _, expired = api_key_create(project=project, name="g", expires_at=timezone.now())
    with Provider() as other, Running(upstream=other.url, spool=tmp_path) as gateway:
        api_key_revoke(key=revoked_row)
        assert [call(key) for key in (revoked, readers[0])] == [(401, "refused")] * 2
        _, later = api_key_create(project=project, name="c")
        monkeypatch.setattr(callers, "api_key_find", down)
        guessed = f"{unused[:-8]}guessing"  # prefixes are shown to all members
        assert [
            call(key) for key in (revoked, readers[0], unused, readers[1], ended, expired, later, guessed)
        ] == [
            (401, "refused"),
            (401, "refused"),
            (200, "observe"),
            (503, "refused"),
            (503, "refused"),
            (503, "refused"),
            (503, "refused"),
            (503, "refused"),
        ]
        assert (len(provider.received), other.received) == (1, [])


def test_a_revoked_key_is_refused_after_five_seconds(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, key = api_key_create(project=project, name="a")
    known = Callers()
    assert run(known.find(key)) is not None
    api_key_revoke(key=row)
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 5)
    monkeypatch.setattr("gateway.callers.time", later)
    assert run(known.find(key)) is None


def test_a_key_is_checked_without_resolving_the_providers_name(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A DNS that does not respond must not look like a database that does not respond."""
    looked_up: list[str] = []
    resolve = socket.getaddrinfo

    def recorded(host: Any, *more: Any, **options: Any) -> Any:
        if host == "slow.example.com" and not options.get("flags", 0) & socket.AI_NUMERICHOST:
            looked_up.append(host)
        return resolve(host, *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", recorded)
    upstreams = {"anthropic": "https://slow.example.com"}
    gateway_update(project=project, changes={"upstreams": upstreams})
    _, key = api_key_create(project=project, name="a")
    found = run(Callers().find(key))
    assert found is not None
    assert (found.upstreams, looked_up) == (upstreams, [])


@pytest.mark.slow
def test_while_the_store_hangs_providers_are_found_by_their_name(
    provider: Provider, api_key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both take threads."""
    is_released = threading.Event()

    def hang(*_: object, **__: object) -> None:
        is_released.wait(60)
        raise OperationalError("the connection is closed")

    def call(_: int) -> int:
        return gateway.call("/anthropic/v1/models", None, {"x-contextapp-key": api_key}, method="GET").status

    upstream = provider.url.replace("127.0.0.1", "localhost")
    # The gateway reads the key at its start.
    with Running(upstream=upstream, spool=tmp_path) as gateway, ThreadPoolExecutor(60) as threads:
        monkeypatch.setattr(callers, "_read", hang)
        statuses = [*threads.map(call, range(60))]
        is_released.set()
    assert set(statuses) == {200}
