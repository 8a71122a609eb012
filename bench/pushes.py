"""Measure pushes: their latency, and turns per second of concurrent sessions."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial

from bench.http import timed
from bench.instance import Instance
from bench.load import Load, create_session, push, push_concurrently
from bench.table import Row

BUDGET = 30_000


def latency(instance: Instance, rounds: int, turns: int) -> list[Row]:
    """Push turn by turn. Each push alternates with one to the bare views."""
    plain = Row("push, p50", "ms", target=1.2)
    counted = Row("push, p50, bare view counts tokens", "ms")
    compacting = Row("push, p50, budget 30,000", "ms")
    plain_tail = Row("push, p95 / p50", "")
    tail = Row("push, p95 / p50, budget 30,000", "", target=3)
    for number in range(rounds):
        # The server closes idle connections.
        ours, bare = instance.ours(), instance.bare()
        never = create_session(ours, f"plain-{number}", None)
        often = create_session(ours, f"compacting-{number}", BUDGET)
        load, other = Load(number), Load(number)
        for _ in range(20):  # the processes cache the session
            push(ours, never, load, load.turn())
        pushes, floor, counting, compacted = [], [], [], []
        for _ in range(turns):
            body = load.turn()
            pushes.append(push(ours, never, load, body))
            floor.append(timed(partial(bare.request, "POST", "/latency/", body), 201))
            counting.append(timed(partial(bare.request, "POST", "/counted/latency/", body), 201))
            compacted.append(push(ours, often, other, other.turn()))
        plain.ours.append(statistics.median(pushes))
        plain.bare.append(statistics.median(floor))
        counted.ours.append(statistics.median(pushes))
        counted.bare.append(statistics.median(counting))
        compacting.ours.append(statistics.median(compacted))
        compacting.bare.append(statistics.median(floor))
        plain_tail.ours.append(_tail(pushes))
        plain_tail.bare.append(_tail(floor))
        tail.ours.append(_tail(compacted))
    return [plain, counted, compacting, plain_tail, tail]


def _tail(latencies: Sequence[float]) -> float:
    """Return the 95th percentile divided by the median."""
    ordered = sorted(latencies)
    return ordered[int(0.95 * len(ordered))] / statistics.median(ordered)


def throughput(instance: Instance, rounds: int, turns: int) -> list[Row]:
    """Push to several sessions at once, alternating with the bare view; half of the turns to a single one."""
    rows = []
    for sessions, pushed in ((1, turns // 2), (4, turns), (16, turns)):
        label = f"turns per second, {sessions} session{'' if sessions == 1 else 's'}"
        plain = Row(label, "", better="higher")
        compacting = Row(f"{label}, budget 30,000", "", better="higher")
        if sessions > 1:
            plain.target, compacting.target = 1.0, 0.7
        for number in range(rounds):
            bare = _rate(instance, sessions, pushed, f"t{number}", budget=None, is_ours=False)
            for row, budget in ((plain, None), (compacting, BUDGET)):
                name = f"t{sessions}-{number}-{budget}"
                row.ours.append(_rate(instance, sessions, pushed, name, budget=budget, is_ours=True))
                row.bare.append(bare)
        rows += [plain, compacting]
    return rows


def _rate(
    instance: Instance, sessions: int, turns: int, name: str, *, budget: int | None, is_ours: bool
) -> float:
    names = [f"{name}-{number}" for number in range(sessions)]
    if is_ours:
        http = instance.ours()
        paths = [create_session(http, each, budget) for each in names]
    else:
        paths = [f"/{each}/" for each in names]
    port = instance.port if is_ours else instance.bare_port
    return push_concurrently(port, instance.key, paths, turns // sessions, is_ours=is_ours)
