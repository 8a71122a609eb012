"""Measure reads of a session of 10,000 turns and of a list of 2,000 sessions."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from functools import partial

import psycopg

from bench.bare_table import COPY_MESSAGES, COPY_SESSIONS, row
from bench.http import Http, timed
from bench.instance import Instance
from bench.load import Load, create_session, messages_pushed, push, push_concurrently
from bench.pushes import BUDGET
from bench.table import Row

#: Messages per page of the whole history; a turn of the load has two.
_PAGE = 400
#: Pushes whose median is compared, at the start of the long session and at its end.
_COMPARED = 200


def long_session(instance: Instance, turns: int) -> list[Row]:
    """Push a session of `turns` turns, and as many to the bare view; compare early and late pushes.

    Two clients at once push what is in between. The bare view's table gets the same messages directly.
    """
    load = Load(1)
    path = create_session(instance.ours(), "long", None)
    _push_in_turn(instance, path, load, 100)
    early = _push_in_turn(instance, path, load, _COMPARED)
    between = turns - 100 - 2 * _COMPARED
    push_concurrently(instance.port, instance.key, [path] * 2, between // 2, is_ours=True)
    with psycopg.connect(instance.database) as connection, connection.cursor().copy(COPY_MESSAGES) as copy:
        for message in messages_pushed([path] * 2, between // 2):
            copy.write_row(row("long", message))
    late = _push_in_turn(instance, path, load, _COMPARED)
    growth = Row(f"push at turn {turns:,} / at turn 100, p50", "", target=1.2)
    growth.ours.append(late / early)
    return [growth]


def _push_in_turn(instance: Instance, path: str, load: Load, turns: int) -> float:
    """Push each turn to contextapp, then to the bare view. Return the median milliseconds of contextapp."""
    ours, bare, took = instance.ours(), instance.bare(), []
    for _ in range(turns):
        body = load.turn()
        took.append(push(ours, path, load, body))
        timed(partial(bare.request, "POST", "/long/", body), 201)
    return statistics.median(took)


def reads(instance: Instance, rounds: int, turns: int) -> list[Row]:
    """Read the long session and the list of sessions, alternating with the bare views."""
    last = Row("last 40 messages, p50", "ms", target=1.5)
    listed = Row("list of 50 of 2,000 sessions, p50", "ms", target=1.5)
    history = Row(f"whole history by pages, {turns:,} turns", "s", target=0.7)
    _create_sessions(instance, 2_000)
    for _ in range(rounds):
        ours, bare = instance.ours(), instance.bare()
        _compare(
            last,
            partial(ours.request, "GET", "/api/v1/sessions/long/turns/?last=20"),
            partial(bare.request, "GET", "/messages/long/?last=40"),
        )
        _compare(
            listed,
            partial(ours.request, "GET", "/api/v1/sessions/?limit=50"),
            partial(bare.request, "GET", "/sessions/"),
        )
        history.ours.append(_history(ours))
        history.bare.append(_bare_history(bare))
    return [last, listed, history]


def fetches(instance: Instance, rounds: int, turns: int) -> list[Row]:
    """Fetch a prompt of 30,000 tokens, early and late in a session: unchanged, and after each push."""
    ours, load = instance.ours(), Load(3)
    path = create_session(ours, "fetched", BUDGET)
    fetch = partial(ours.request, "GET", "/api/v1/sessions/fetched/prompt/")

    def push_and_fetch() -> float:
        push(ours, path, load, load.turn())
        return timed(fetch, 200)

    rows = []
    for mark in (100, turns):
        while load.number < mark:
            push(ours, path, load, load.turn())
        unchanged = Row(f"fetch a prompt of 30,000 tokens at turn {mark:,}, p50", "ms", target=3)
        changed = Row(f"fetch after each push from turn {mark:,} on, p50", "ms", target=3)
        for each, measure in ((unchanged, partial(timed, fetch, 200)), (changed, push_and_fetch)):
            each.ours += [statistics.median(measure() for _ in range(50)) for _ in range(rounds)]
        rows += [unchanged, changed]
    return rows


def _compare(row: Row, ours: Callable[[], tuple[int, bytes]], bare: Callable[[], tuple[int, bytes]]) -> None:
    pairs = [(timed(ours, 200), timed(bare, 200)) for _ in range(60)]
    row.ours.append(statistics.median(pair[0] for pair in pairs))
    row.bare.append(statistics.median(pair[1] for pair in pairs))


#: Creating the sessions over the API would take longer than all other measurements.
_CLONE = """
INSERT INTO agent_sessions_agentsession
SELECT (jsonb_populate_record(
           s, jsonb_build_object('id', gen_random_uuid(), 'external_id', 'listed-' || n))).*
  FROM agent_sessions_agentsession s CROSS JOIN generate_series(1, %s) n
 WHERE s.external_id = 'listed'
"""


def _create_sessions(instance: Instance, count: int) -> None:
    http, load = instance.ours(), Load(5)
    path = create_session(http, "listed", 100_000)
    push(http, path, load, load.turn())
    with psycopg.connect(instance.database, autocommit=True) as connection:
        connection.execute(_CLONE, [count])
        connection.execute(COPY_SESSIONS)
        connection.execute("VACUUM ANALYZE")


def _history(http: Http) -> float:
    """Return the seconds to read all messages through contextapp."""
    began, cursor = time.perf_counter(), ""
    while cursor is not None:
        path = f"/api/v1/sessions/long/turns/?limit={_PAGE // 2}" + (f"&cursor={cursor}" if cursor else "")
        status, answer = http.request("GET", path)
        assert status == 200, answer[:300]
        cursor = json.loads(answer)["next_cursor"]
    return time.perf_counter() - began


def _bare_history(http: Http) -> float:
    began, after = time.perf_counter(), 0
    while True:
        status, answer = http.request("GET", f"/messages/long/?limit={_PAGE}&after={after}")
        assert status == 200, answer[:300]
        page = json.loads(answer)["data"]
        if not page:
            return time.perf_counter() - began
        after = page[-1]["position"]
