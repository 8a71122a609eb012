"""The client in other processes: forks, and exceptions that are sent from one process to another."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable

import pytest
from contextapp_client import ApiError, ContextApp, NotFound

from tests.client.flaky import Canned, FlakyServer


@pytest.mark.parametrize("duplicate", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy])
def test_an_error_is_complete_in_another_process(duplicate: Callable[[ApiError], ApiError]) -> None:
    """Otherwise a `ProcessPoolExecutor` breaks, and Celery replaces the error."""
    error = NotFound(404, "not_found", "No session.", param="id", retry_after=2.0)
    again = duplicate(error)
    assert type(again) is NotFound
    assert str(again) == str(error) == "404 not_found: No session. (id)"
    assert vars(again) == vars(error)


@pytest.mark.processes
def test_a_fork_does_not_share_the_connections_of_its_parent(flaky: Callable[..., FlakyServer]) -> None:
    server = flaky(Canned())
    session = ContextApp(server.url, "ctx_key").session("s")
    session.info()
    session.info()
    assert len(set(server.clients)) == 1
    child = os.fork()
    if child == 0:
        try:
            session.info()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0) == (child, 0)
    session.info()
    first, second, forked, last = server.clients
    assert first == second == last != forked
