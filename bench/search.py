"""Measure the search: quality on recorded sessions, and speed and size on generated ones.

    python -m bench.search identifiers <transcripts> [--sample 6]
    python -m bench.search questions locomo10.json
    python -m bench.search questions <transcripts> [--sample 6]
    python -m bench.search speed [--project generated] [--queries 200]

Uses the database of `DATABASE_URL`. The first two write into separate projects, which are recreated.

**identifiers**: each session is replayed with `balanced` at 25% of its size. For each identifier that the
model's next message mentions, but the prompt no longer shows, a search of the earlier messages should return
the message that mentioned it last.

**questions**: taken from a file in the format of LoCoMo, whose questions name the messages with the evidence,
or from recorded sessions. There, a sentence that repeats a fact, without that fact, is the question, and the
earlier messages that mention the fact are the evidence. A question is answered if one of these is found.
Every second question was used to choose the weights of the ranking; the others are the test. Plain BM25 over
the same messages is the comparison.

**speed** searches the data of `bench.store` for two and three words that occur in one of its messages.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextapp.settings")
django.setup()

from django.db import connection  # noqa: E402

from accounts.models import Project  # noqa: E402
from accounts.services.projects import project_create  # noqa: E402
from bench.ours import Ours  # noqa: E402
from bench.replay import Case  # noqa: E402
from bench.search_questions import (  # noqa: E402
    Bm25,
    Question,
    locomo,
    repeated_facts,
)
from bench.transcripts import Transcript, imported_transcripts  # noqa: E402
from compaction.adapters.tiktoken_counter import TiktokenCounter  # noqa: E402
from compaction.messages import Role  # noqa: E402
from compaction.policy import get_policy  # noqa: E402
from compaction.replay.mentions import PromptMentions  # noqa: E402
from importers.base import ImportedSession  # noqa: E402
from search.documents import message_text  # noqa: E402
from search.terms import STOP_WORDS  # noqa: E402
from sessions.models import AgentSession, Blob, Message, SearchSegment  # noqa: E402
from sessions.selectors.convert import message_value  # noqa: E402
from sessions.selectors.search.request import search_expression  # noqa: E402
from sessions.selectors.search.results import search  # noqa: E402
from sessions.services.imports.store import session_import  # noqa: E402
from sessions.services.search.indexing import session_index  # noqa: E402

_LEAST_TOKENS, _LEAST_BUDGET = 20_000, 4_000
_SHARE = 0.25


@dataclass
class Ranks:
    """The ranks at which the messages in question were found, None if they were not."""

    ranks: list[int | None] = field(default_factory=list)

    def share(self, most: int) -> float:
        found = sum(rank is not None and rank < most for rank in self.ranks)
        return 100 * found / max(1, len(self.ranks))

    def __str__(self) -> str:
        shares = ", ".join(f"{self.share(most):.1f}% in the first {most}" for most in (1, 5, 10))
        return f"{len(self.ranks):,} searches: {shares}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    identifiers = commands.add_parser("identifiers")
    identifiers.add_argument("folder", type=Path)
    identifiers.add_argument("--sample", type=int, default=1, help="take every n-th session")
    questions = commands.add_parser("questions")
    questions.add_argument("source", type=Path, help="a file of LoCoMo, or a folder of recorded sessions")
    questions.add_argument("--sample", type=int, default=1, help="take every n-th session")
    speed = commands.add_parser("speed")
    speed.add_argument("--project", default="generated")
    speed.add_argument("--queries", type=int, default=200)
    speed.add_argument("--messages", type=int, help="index only sessions with this many messages in total")
    options = parser.parse_args()
    {"identifiers": _identifiers, "questions": _questions, "speed": _speed}[options.command](options)


# -- Identifiers ----------------------------------------------------------------------------------


def _identifiers(options: argparse.Namespace) -> None:
    project, ranks = _empty_project("bench-identifiers"), Ranks()
    long = (pair for pair in imported_transcripts(options.folder) if pair[1].tokens >= _LEAST_TOKENS)
    for number, (imported, transcript) in enumerate(long):
        if number % options.sample:
            continue
        session = _store(project, imported)
        for name, position, before in _evicted_references(transcript):
            ranks.ranks.append(_rank(session, name, {position}, before=before))
        print(f"{number + 1:4} {ranks}", flush=True)


def _evicted_references(transcript: Transcript) -> Iterator[tuple[str, int, int]]:
    """Yield each identifier that a prompt lost, with the message that mentioned it last and the next one."""
    budget = max(_LEAST_BUDGET, int(_SHARE * transcript.tokens))
    case = Case(transcript.name, transcript.format, transcript.messages, budget)
    contender = Ours(case, TiktokenCounter(), replace(get_policy("balanced"), soft=0))
    shown = PromptMentions(case.messages, case.references)
    last: dict[str, int] = {}
    known: set[tuple[str, int]] = set()
    for n, message in enumerate(case.messages):
        if message.role is Role.ASSISTANT and n:
            shown.show(contender.prompt(n))
            for name in sorted(case.references[n]):
                if name in last and name not in shown and (name, last[name]) not in known:
                    known.add((name, last[name]))
                    yield name, last[name], n
        last.update(dict.fromkeys(case.references[n], n))


# -- Questions ------------------------------------------------------------------------------------


def _questions(options: argparse.Namespace) -> None:
    if options.source.is_dir():
        found: Iterator[Asked] = _recorded(options.source, options.sample)
    else:
        found = ((imported, questions, None) for imported, questions in locomo(options.source))
    project = _empty_project("bench-questions")
    halves, plain = (Ranks(), Ranks()), (Ranks(), Ranks())
    number = 0
    for imported, questions, texts in found:
        session = _store(project, imported)
        bm25 = Bm25(texts or _texts(session))
        for question in questions:
            half, number = number % 2, number + 1
            evidence, before = question.evidence, question.before
            halves[half].ranks.append(_rank(session, question.text, set(evidence), before=before))
            best = bm25.best(question.text, before=before, most=10)
            plain[half].ranks.append(next((at for at, one in enumerate(best) if one in evidence), None))
    for name, half in (("even", 0), ("odd", 1)):
        print(f"{name} questions: search {halves[half]}\n{' ' * 16}BM25   {plain[half]}", flush=True)


#: A session, its questions, and the texts of its messages if they are known.
Asked = tuple[ImportedSession, Sequence[Question], Sequence[str] | None]


def _recorded(folder: Path, sample: int) -> Iterator[Asked]:
    for number, (imported, transcript) in enumerate(imported_transcripts(folder)):
        questions = [] if number % sample else list(repeated_facts(transcript))
        if questions:
            yield imported, questions, [message_text(message) for message in transcript.messages]


def _texts(session: AgentSession) -> list[str]:
    rows = session.messages.select_related("blob").order_by("position")
    return [message_text(message_value(row, session.format)) for row in rows]


# -- Speed ----------------------------------------------------------------------------------------


def _speed(options: argparse.Namespace) -> None:
    project = Project.objects.get(slug=options.project)
    ids = _sessions_with(project, options.messages)
    started = time.process_time()
    indexed = sum(session_index(session_id=id) for id in ids)
    if indexed:
        print(f"indexed {indexed:,} messages in {time.process_time() - started:.0f} s of CPU")
        with connection.cursor() as cursor:
            for table in ("segment", "block", "state"):
                cursor.execute(f"VACUUM ANALYZE agent_sessions_search{table}")
    _print_size(project)
    random_ = random.Random(1)
    for words in (2, 3):
        queries = [_words(random_, random_.choice(ids), words) for _ in range(options.queries)]
        _print_times(f"project, {words} words", [_timed(project.pk, None, query) for _, query in queries])
        times = [_timed(project.pk, session, query) for session, query in queries]
        _print_times(f"session, {words} words", times)


def _sessions_with(project: Project, messages: int | None) -> list[UUID]:
    """Return the sessions of the project; with `messages`, as many as have this many messages in total."""
    ids, total = [], 0
    rows = AgentSession.objects.filter(project=project).order_by("external_id")
    for id, count in rows.values_list("pk", "message_count"):
        if messages is not None and total >= messages:
            break
        ids.append(id)
        total += count
    return ids


def _words(random_: random.Random, session: UUID, count: int) -> tuple[UUID, str]:
    """Return words of a random message of a session."""
    rows = Message.objects.filter(session=session).select_related("blob")
    number = AgentSession.objects.values_list("message_count", flat=True).get(pk=session)
    value = message_value(rows.get(position=random_.randrange(number)), "anthropic")
    words = {word.strip('.,:;"') for word in message_text(value).split()}
    chosen = sorted(word for word in words if len(word) > 3 and word.lower() not in STOP_WORDS)
    return session, " ".join(random_.sample(chosen, min(count, len(chosen))))


def _timed(project_id: UUID, session_id: UUID | None, query: str) -> float:
    started = time.perf_counter()
    search(search_expression(query).request(project_id, session_id=session_id))
    return 1_000 * (time.perf_counter() - started)


def _print_times(label: str, times: Sequence[float]) -> None:
    cuts = statistics.quantiles(times, n=20)
    print(
        f"{label}: median {statistics.median(times):.1f} ms, p95 {cuts[18]:.1f} ms, max {max(times):.1f} ms"
    )


def _print_size(project: Project) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relname IN "
            "('agent_sessions_searchsegment', 'agent_sessions_searchblock', 'agent_sessions_searchstate')"
        )
        size = int(cursor.fetchone()[0])
    indexed = SearchSegment.objects.filter(project=project)
    ids = list(indexed.values_list("session", flat=True).distinct())
    total = Message.objects.filter(session__in=ids).count()
    rows = Message.objects.filter(session__in=ids[:40], position__lt=20).select_related("blob")
    sample = [len(message_text(message_value(row, "anthropic")).encode()) for row in rows]
    segments = indexed.count()
    pushed = statistics.fmean(sample) * total
    print(
        f"{total:,} messages in {segments:,} segments; index {size / 1e6:,.0f} MB, "
        f"{size / pushed:.3f} bytes per byte of text"
    )


# -- Shared ---------------------------------------------------------------------------------------


def _empty_project(slug: str) -> Project:
    AgentSession.objects.filter(project__slug=slug).delete()
    Blob.objects.filter(project__slug=slug).delete()
    Project.objects.filter(slug=slug).delete()
    return project_create(name=slug.capitalize(), slug=slug)


def _store(project: Project, imported: ImportedSession) -> AgentSession:
    session = session_import(project=project, imported=imported).session
    session_index(session_id=session.pk)
    return session


def _rank(session: AgentSession, query: str, wanted: set[int], *, before: int | None = None) -> int | None:
    request = search_expression(query).request(session.project_id, session_id=session.pk, before=before)
    hits = search(request, limit=10).hits
    return next((rank for rank, hit in enumerate(hits) if hit.position in wanted), None)


if __name__ == "__main__":
    main()
