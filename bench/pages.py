"""Measure the server time of each page of a project, using data from `bench.store`.

    .venv/bin/python -m bench.pages --project generated

Requests run through the whole Django stack in this process, one at a time, each for a random session: half of
the time one of the longest. Prints milliseconds, the CPU time of this process (the rest is Postgres and
waiting) and the number of queries of the last request.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import statistics
import time
from collections.abc import Callable

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextapp.settings")
django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.db import connection, reset_queries  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402
from django.urls import get_resolver, reverse  # noqa: E402

from accounts.models import Membership, Project, Role  # noqa: E402
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
        _measure(client, project, asked.requests, random.Random(asked.seed))
    finally:
        user.delete()


def _measure(client: Client, project: Project, requests: int, chance: random.Random) -> None:
    rows = AgentSession.objects.filter(project=project, turn_count__gt=0).order_by("-turn_count", "id")
    sessions = list(rows)
    print(f"{sum(s.turn_count for s in sessions):,} turns in {len(sessions):,} sessions, "
          f"the longest of {sessions[0].turn_count:,}")  # fmt: skip
    print(f"{'page':34} {'p50':>7} {'p95':>7} {'max':>7} {'cpu p95':>8} {'queries':>8}")
    for name, address in _pages(project, chance).items():
        taken, computed = [], []
        for number in range(requests + 2):
            session = chance.choice(sessions[:LONGEST] if number % 2 else sessions)
            start, busy = time.perf_counter(), time.process_time()
            reset_queries()  # the query log is bounded; only the last request is counted
            with CaptureQueriesContext(connection) as queries:
                response = client.get(address(session))
                for _ in getattr(response, "streaming_content", ()):
                    pass
            taken.append(1_000 * (time.perf_counter() - start))
            computed.append(1_000 * (time.process_time() - busy))
            assert response.status_code == 200, (address(session), response.status_code)
        taken, computed = sorted(taken[2:]), sorted(computed[2:])  # warm-up requests, which load templates
        at = int(0.95 * (len(taken) - 1))
        figures = f"{statistics.median(taken):7.1f} {taken[at]:7.1f} {taken[-1]:7.1f} {computed[at]:8.1f}"
        print(f"{name:34} {figures} {len(queries):8}")


def _pages(project: Project, chance: random.Random) -> dict[str, Callable[[AgentSession], str]]:
    def of(name: str, *more: Callable[[AgentSession], int]) -> Callable[[AgentSession], str]:
        return lambda s: reverse(name, args=[project.slug, s.pk, *(value(s) for value in more)])

    def a_turn(session: AgentSession) -> int:
        return chance.randrange(session.turn_count)

    def listed(query: str = "") -> Callable[[AgentSession], str]:
        return lambda _: f"{reverse('sessions', args=[project.slug])}?{query}"

    return {
        "list": listed(),
        "list, filter expression": listed("q=peak%3A%3E20k+health%3AA%2CB+turns%3A%3E50"),
        "list, words": listed("q=report"),
        "list, what moved": lambda _: f"{reverse('sessions_updated', args=[project.slug])}?since=2020-01-01",
        "list, suggestions": lambda _: f"{reverse('sessions_suggest', args=[project.slug])}?q=tag:",
        "session, newest turns": of("session"),
        "session, turns in the middle": lambda s: f"{of('session')(s)}?turn={a_turn(s)}",
        "session, chart": of("session_chart"),
        "session, chart as a table": of("session_chart_table"),
        "turn": of("session_turn", a_turn),
        "turn against another": lambda s: f"{of('session_turn_diff', a_turn)(s)}?turn={a_turn(s)}",
        "turn, JSON": of("session_past_prompt_json", a_turn),
        "turn, search": lambda s: f"{of('session_past_prompt', a_turn)(s)}?q=the+report",
        "prompt": of("session_prompt"),
        "compactions": of("session_compactions"),
        "compaction": lambda s: (
            of("session_compaction", lambda s: s.compactions.latest("number").number)(s)
            if s.compaction_count
            else of("session_compactions")(s)
        ),
        "raw": of("session_raw"),
    }


if __name__ == "__main__":
    main()
