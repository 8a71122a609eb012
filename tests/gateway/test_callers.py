"""Keys while the store does not respond."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from accounts.models import Project
from accounts.services.api_keys import api_key_create, api_key_revoke
from accounts.services.gateway import gateway_update
from gateway import callers, compact
from gateway.callers import Callers
from tests.asynchronous import run
from tests.gateway.double import Provider
from tests.gateway.running import Running
from tests.gateway.test_compact import Agent

pytestmark = pytest.mark.django_db(transaction=True)


def down(*_: object, **__: object) -> None:
    raise OperationalError("the connection is closed")


def test_a_key_that_was_revoked_is_refused_even_while_the_store_is_down(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that the gateway has not checked yet is accepted, but gets no settings of the project."""

    async def work() -> None:
        found = Callers()
        assert await found.find(revoked) is None
        monkeypatch.setattr(callers, "_read", down)
        known = found._known
        known.update({id: (0.0, caller) for id, (_, caller) in known.items()})
        assert await found.find(revoked) is None
        unknown = await found.find(valid)
        assert unknown is not None
        assert not unknown.is_verified

    (key, revoked), (_, valid) = (api_key_create(project=project, name=name) for name in "ab")
    api_key_revoke(key=key)
    run(work())


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
    assert (found.is_verified, found.upstreams, looked_up) == (True, upstreams, [])


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
    with Running(upstream=upstream, spool=tmp_path) as gateway, ThreadPoolExecutor(60) as threads:
        monkeypatch.setattr(callers, "_read", hang)
        statuses = [*threads.map(call, range(60))]
        is_released.set()
    assert set(statuses) == {200}


@pytest.mark.slow
def test_the_prefix_of_a_key_does_not_suffice_for_the_last_edits(
    gateway: Running,
    provider: Provider,
    api_key: str,
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Prefixes are shown to all members. The edits may contain working memory that the history lacks."""
    gateway_update(project=project, changes={"mode": "compact", "budget_tokens": 12_000})
    agent = Agent(gateway, provider, api_key)
    for number in range(10):
        agent.work(number)
    assert agent.work(10).headers["x-contextapp"].startswith("compact; ")
    monkeypatch.setattr(callers, "_read", down)
    monkeypatch.setattr(compact, "key_find", down)
    agent.headers |= {"x-contextapp-key": f"{api_key[:-8]}guessing", "x-contextapp-mode": "compact"}
    assert agent.work(11).headers["x-contextapp"] == "passthrough; reason=store"
