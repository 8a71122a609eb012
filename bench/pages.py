"""Measure the server time of each page of a project, using data from `bench.store`.

    .venv/bin/python -m bench.pages
    .venv/bin/python -m bench.pages --rank 0        # only the longest session
    .venv/bin/python -m bench.pages --only "prompt" "session, chart"

Requests run through the whole Django stack in this process, one at a time, as a member of the project, each
for a random session: half of the time one of the longest. Prints milliseconds, the CPU time of this process
and of its Postgres backend and of both (the rest is waiting), and the number of queries of the last request.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import statistics
import time
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextapp.settings")
django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.db import connection, reset_queries  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402
from django.urls import get_resolver  # noqa: E402

from accounts.models import Membership, Project, Role  # noqa: E402
from bench.page_urls import pages  # noqa: E402
from sessions.models import AgentSession  # noqa: E402

#: Number of sessions that count as the longest.
LONGEST = 50


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--project", default="generated")
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rank", type=int, help="request only the session of this rank by length, from 0")
    parser.add_argument("--only", nargs="*", help="measure only these pages")
    asked = parser.parse_args()
    project = Project.objects.get(slug=asked.project)
    user, _ = User.objects.get_or_create(username="bench-pages")
    Membership.objects.get_or_create(project=project, user=user, defaults={"role": Role.MEMBER})
    client = Client(headers={"host": "localhost"})
    client.force_login(user)
    _ = get_resolver().url_patterns
    gc.collect()
    gc.freeze()  # like the web server after loading
    try:
        _measure(client, project, asked)
    finally:
        user.delete()


def _measure(client: Client, project: Project, asked: argparse.Namespace) -> None:
    chance = random.Random(asked.seed)
    rows = AgentSession.objects.filter(project=project, turn_count__gt=0).order_by("-turn_count", "id")
    sessions = list(rows)
    print(f"{sum(s.turn_count for s in sessions):,} turns in {len(sessions):,} sessions, "
          f"the longest of {sessions[0].turn_count:,}")  # fmt: skip
    if asked.rank is not None:
        sessions = [sessions[asked.rank]]
        print(f"only one of {sessions[0].turn_count:,} turns, {sessions[0].message_count:,} messages")
    print(f"{'page':34} {'p50':>7} {'p95':>7} {'cpu p95':>8} {'Postgres cpu':>13} {'both':>7} {'queries':>8}")
    for name, address in pages(project, chance).items():
        if asked.only and name not in asked.only:
            continue
        taken, computed, queried = [], [], []
        for number in range(asked.requests + 2):
            session = chance.choice(sessions[:LONGEST] if number % 2 else sessions)
            start, busy, backend = time.perf_counter(), time.process_time(), _backend_seconds()
            response = client.get(address(session))
            for _ in getattr(response, "streaming_content", ()):
                pass
            taken.append(1_000 * (time.perf_counter() - start))
            computed.append(1_000 * (time.process_time() - busy))
            queried.append(1_000 * (_backend_seconds() - backend))
            assert response.status_code in {200, 204}, (address(session), response.status_code)
        reset_queries()
        with CaptureQueriesContext(connection) as queries:  # which takes time
            client.get(address(session))
        both = [sum(pair) for pair in zip(computed, queried, strict=True)]
        # The first two requests load templates.
        wall, cpu, sql, sums = (_p95(each[2:]) for each in (taken, computed, queried, both))
        figures = f"{statistics.median(taken[2:]):7.1f} {wall:7.1f} {cpu:8.1f} {sql:13.1f} {sums:7.1f}"
        print(f"{name:34} {figures} {len(queries):8}", flush=True)


def _p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * (len(values) - 1))]


def _backend_seconds() -> float:
    """Return the CPU seconds of this connection's Postgres backend, 0 if it is on another machine."""
    connection.ensure_connection()
    try:
        ran = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat").read_text()
    except OSError:
        return 0.0
    return int(ran.split()[0]) / 1e9


if __name__ == "__main__":
    main()
