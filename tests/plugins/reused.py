"""Fixtures whose rows stay in the database as long as consecutive tests need them.

A fixture with `@reused` runs in a savepoint. The next test that needs it gets a copy of its value, without
running it again. Each test still sees only the rows of the fixtures it needs: before a test starts, the
savepoints of the other fixtures are rolled back. Tests with `transactional_db` do not reuse anything.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus
from pytest_django import DjangoDbBlocker

from sessions.api import auth
from sessions.selectors import lookups
from sessions.services.push import session_state

_Function = Callable[..., Any]
#: Fixtures in the order in which they run, with those they depend on by argument: None is `db`.
_Plan = dict[_Function, dict[str, _Function | None]]

#: Caches of rows, which a rollback does not reach.
_CACHES: tuple[dict[Any, Any], ...] = (auth._principals, lookups._routes, session_state._states)


@dataclass
class _Layer:
    """The savepoint of a fixture, and the state after it: the values of all fixtures, and the caches."""

    function: _Function
    connection: BaseDatabaseWrapper
    block: transaction.Atomic
    values: dict[_Function, Any]
    caches: tuple[dict[Any, Any], ...]


_layers: list[_Layer] = []
#: The values for the running test: copies, so that a test cannot change them for the next one.
_values: dict[_Function, Any] = {}


def reused(function: _Function | None = None, *, autouse: bool = False) -> Any:
    """Make `function` a fixture that is reused. It may depend on `db` and on other reused fixtures."""
    if function is None:
        return functools.partial(reused, autouse=autouse)

    @functools.wraps(function)
    def fixture(**dependencies: Any) -> Any:
        return _values[function] if function in _values else function(**dependencies)

    fixture.reused, fixture.autouse = function, autouse  # type: ignore[attr-defined]
    return pytest.fixture(fixture, autouse=autouse)


@pytest.fixture(scope="session")
def reused_rows(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Callable[[], None]]:
    """Return a function that removes the rows of all reused fixtures."""

    def remove() -> None:
        with django_db_blocker.unblock():
            _close(0)
            _restore()

    yield remove
    remove()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[Any]:
    if fixturedef.argname == "_django_db_helper":
        remove = request.getfixturevalue("reused_rows")
        if _is_transactional(request.node):
            remove()
        else:
            with request.getfixturevalue("django_db_blocker").unblock():
                _open(_needed(request.node))
    return (yield)


def _is_transactional(test: pytest.Item) -> bool:
    marker = test.get_closest_marker("django_db")
    declared = marker is not None and (marker.kwargs.get("transaction") or any(marker.args[:1]))
    return declared or "transactional_db" in test.fixturenames  # type: ignore[attr-defined]


def _needed(test: pytest.Item) -> _Plan:
    """Return the reused fixtures of a test, each after those it depends on."""
    definitions = test._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]
    found: _Plan = {}

    def add(name: str, position: int) -> _Function | None:
        definition = definitions[name][position]
        function = getattr(definition.func, "reused", None)
        if function is None:
            return None
        if function not in found:
            # A fixture may depend on the one that it overrides, which has the same name.
            arguments = {
                each: add(each, position - 1 if each == name else -1) for each in definition.argnames
            }
            others = [each for each, needed in arguments.items() if needed is None and each != "db"]
            assert not others, f"{name} is reused, but depends on {others}, which is not"
            found[function] = arguments
        return function

    # Fixtures that a test requests for their effects run first, as without reuse.
    first = {name for mark in test.iter_markers("usefixtures") for name in mark.args}
    automatic = {name for name, each in definitions.items() if getattr(each[-1].func, "autouse", False)}
    uses = _uses(test.session)[test.path]
    for name in sorted(
        definitions, key=lambda name: (name not in first, -uses[name], name not in automatic, name)
    ):
        add(name, -1)
    return found


@functools.cache
def _uses(session: pytest.Session) -> dict[Path, Counter[str]]:
    """Return how many tests of each file use each fixture, so that the most frequent come first."""
    uses: dict[Path, Counter[str]] = defaultdict(Counter)
    for test in session.items:
        uses[test.path].update(test.fixturenames)  # type: ignore[attr-defined]
    return uses


def _open(needed: _Plan) -> None:
    """Make these, in this order, the only open layers, and restore their values and the caches."""
    _close(0 if connection.closed_in_transaction or _is_aborted() else len(_layers))
    same = 0
    while same < min(len(_layers), len(needed)) and _layers[same].function is list(needed)[same]:
        same += 1
    _close(same)
    _restore()
    for function, dependencies in list(needed.items())[same:]:
        _run(function, {name: each and _values[each] for name, each in dependencies.items()})
    if len(_layers) > same:
        _restore()


def _is_aborted() -> bool:
    """Return whether a statement failed after the last test, such as closing a cursor that is gone."""
    raw = connection.connection
    return raw is not None and raw.info.transaction_status == TransactionStatus.INERROR


def _run(function: _Function, arguments: dict[str, Any]) -> None:
    block = transaction.atomic()
    block._from_testcase = True  # type: ignore[attr-defined]
    block.__enter__()
    try:
        _values[function] = function(**arguments)
    except BaseException:
        transaction.set_rollback(True)
        block.__exit__(None, None, None)
        raise
    _layers.append(
        _Layer(function, connections[DEFAULT_DB_ALIAS], block, deepcopy(_values), tuple(map(dict, _CACHES)))
    )


def _restore() -> None:
    _values.clear()
    for cache in _CACHES:
        cache.clear()
    if _layers:
        _values.update(deepcopy(_layers[-1].values))
        for cache, kept in zip(_CACHES, _layers[-1].caches, strict=True):
            cache.update(kept)


def _close(keep: int) -> None:
    """Roll back all layers but the first `keep`."""
    if _layers and _layers[0].connection is not connections[DEFAULT_DB_ALIAS]:
        # Since Playwright's event loop runs in this thread, Django uses another connection.
        _layers[0].connection.close()
        _layers.clear()
    while len(_layers) > keep:
        transaction.set_rollback(True)
        _layers.pop().block.__exit__(None, None, None)
