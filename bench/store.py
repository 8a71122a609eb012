"""Generate data for measuring pages: 20,000 sessions with 1,000,000 turns. Deterministic.

    .venv/bin/python -m bench.store

Writes into a separate project (`--project`, recreated each time) with COPY, in a few minutes. Session lengths
are distributed like real ones (most are short, a few have hundreds of turns), over the ninety days before
`--until`. Prompts grow, are compacted at 70% of the budget and grow again. Texts consist of words, so they
compress like real text. Prompt snapshots, rollups and the search index of the longest sessions are created by
contextapp's code.

`--long` adds sessions of these lengths. The first is like an imported log that was never
compacted: all its messages are in its prompt. Each turn has two messages.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextapp.settings")
django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.db import connection, transaction  # noqa: E402

from accounts.models import Membership, Project, Role  # noqa: E402
from accounts.services.projects import project_create  # noqa: E402
from bench.store_rows import Made, session_rows  # noqa: E402
from bench.store_texts import Bodies  # noqa: E402
from sessions.models import (  # noqa: E402
    AgentSession,
    Compaction,
    Edit,
    Message,
    Preamble,
    PromptSnapshot,
    Recap,
    SessionProfile,
    ToolOutputs,
    ToolRollup,
    ToolScan,
    Turn,
)
from sessions.services.compactions.snapshots import snapshot_rebuild  # noqa: E402
from sessions.services.search.indexing import session_index  # noqa: E402
from sessions.services.spending.rollups import rollups_fill  # noqa: E402
from sessions.store.postgres import rows_copy  # noqa: E402

MEMBERS = ("ada", "ben", "cleo", "dan", "eve", "finn", "gus", "hana")

_TABLES = (AgentSession, Turn, Message, Compaction, Edit, ToolOutputs, ToolRollup, SessionProfile)

#: Sessions written per transaction.
_BATCH = 25


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=20_000)
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--long", type=int, nargs="*", default=[150_000, 20_000], metavar="TURNS")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--project", default="generated", help="slug; existing data of the project is deleted"
    )
    parser.add_argument("--until", type=date.fromisoformat, default=datetime.now(UTC).date())
    options = parser.parse_args()
    began = time.monotonic()

    def report(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True)

    store_make(
        slug=options.project,
        sessions=options.sessions,
        turns=options.turns,
        long=options.long,
        seed=options.seed,
        until=options.until,
        report=report,
    )


def store_make(
    *,
    slug: str,
    sessions: int,
    turns: int,
    seed: int,
    until: date,
    long: Sequence[int] = (),
    report: Any = print,
) -> Project:
    """Write the data. `report` is called with progress messages."""
    project, users = _project(slug), _users()
    report(f"project {slug} is empty")
    random_ = random.Random(seed)
    bodies = Bodies.make(random_)
    report(f"{len(bodies.steps):,} texts created")
    lengths = [*long, *lengths_of(random_, sessions, turns - sum(long))]
    last = datetime(until.year, until.month, until.day, tzinfo=UTC)
    done = 0
    for first in range(0, len(lengths), _BATCH):
        batch = lengths[first : first + _BATCH]
        _write(
            session_rows(
                random_,
                bodies,
                project.pk,
                users,
                number=number,
                turns=length,
                until=last,
                is_imported=bool(long) and number == 0,
            )
            for number, length in enumerate(batch, first)
        )
        done += sum(batch)
        if first // _BATCH % 100 == 99 or first + _BATCH >= len(lengths):
            report(f"{done:,} turns written")
    with connection.cursor() as cursor:
        for model in _TABLES:
            cursor.execute(f'ANALYZE "{model._meta.db_table}"')
    report(f"{_snapshots(project):,} prompt snapshots built")
    report(f"{rollups_fill(most_batches=1_000_000, everywhere=True):,} turns rolled up")
    for session in AgentSession.objects.filter(project=project, turn_count__in=long):
        while session_index(session_id=session.pk):
            pass
    report(f"search index of {len(long)} sessions built")
    return project


def lengths_of(random_: random.Random, sessions: int, turns: int) -> list[int]:
    """Return the number of turns of each session: log-normal, `turns` in total."""
    shares = [random_.lognormvariate(0, 1.2) for _ in range(sessions)]
    scale = turns / sum(shares)
    lengths = [max(1, int(share * scale)) for share in shares]
    longest = max(range(sessions), key=lengths.__getitem__)
    lengths[longest] += turns - sum(lengths)
    return lengths


def _project(slug: str) -> Project:
    """Create an empty project with all existing users as members, and some who only have spending."""
    Project.objects.filter(slug=slug).delete()
    project = project_create(name=slug.capitalize(), slug=slug)
    for user in User.objects.exclude(username__in=MEMBERS):
        Membership.objects.create(project=project, user=user, role=Role.OWNER)
    for user_id in _users():
        Membership.objects.create(project=project, user_id=user_id, role=Role.MEMBER)
    return project


def _users() -> Sequence[int]:
    found = []
    for name in MEMBERS:
        user, made = User.objects.get_or_create(username=name)
        if made:
            user.set_unusable_password()
            user.save()
        found.append(user.pk)
    return found


def _write(made: Iterable[Made]) -> None:
    made = list(made)
    with transaction.atomic():
        for model, rows in (
            (AgentSession, [one.session for one in made]),
            (Preamble, [one.preamble for one in made]),
            (Turn, [row for one in made for row in one.turns]),
            (Message, [row for one in made for row in one.messages]),
            (Compaction, [row for one in made for row in one.compactions]),
            (Edit, [row for one in made for row in one.edits]),
            (Recap, [row for one in made for row in one.recaps]),
            (ToolOutputs, [row for one in made for row in one.tools.outputs(one.session["id"])]),
            (ToolRollup, [row for one in made for row in one.tools.rollups()]),
            (ToolScan, [one.scan for one in made]),
            (SessionProfile, [one.profile for one in made]),
        ):
            rows_copy(model._meta.db_table, rows)


def _snapshots(project: Project) -> int:
    """Build the prompt snapshots of compacted sessions, as a compaction does."""
    count = 0
    for id in _compacted(project):
        with transaction.atomic():
            session = AgentSession.objects.select_for_update().get(pk=id)
            snapshot_rebuild(session=session)
        count += 1
    return count


def _compacted(project: Project) -> Iterator[UUID]:
    rows = AgentSession.objects.filter(project=project, compaction_count__gt=0)
    return (
        rows.exclude(pk__in=PromptSnapshot.objects.values("session")).values_list("pk", flat=True).iterator()
    )


if __name__ == "__main__":
    main()
