"""Compare the stores of agent frameworks with contextapp's, in-process and on the same Postgres.

Each store gets the same turns (a tool call and its result) one after the other. Only contextapp counts
tokens, redacts secrets and can rebuild the prompt of each turn; the others store the messages. LangGraph's
saver stores a checkpoint of the whole state after each turn, as its graphs do.

`python -m bench --stores` runs this module in a separate process: `python -m bench.stores --database URL`.
Stores that are not installed are skipped; bench/README.md says how to install them.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Protocol
from uuid import uuid4

import orjson
import psycopg

from bench.instance import Instance
from bench.load import ROOT, Load
from bench.table import print_table

Messages = list[dict[str, Any]]


class Store(Protocol):
    """One session of a store. `tables` are the patterns of the names of its tables."""

    tables: Sequence[str]

    async def append(self, messages: Messages) -> None: ...

    async def last(self, count: int) -> Sequence[Any]: ...


class OurStore:
    tables = ("agent_sessions_%",)

    def __init__(self) -> None:
        from accounts.models import ApiKey
        from sessions.selectors.redaction import redaction_of
        from sessions.services.push.values import Target
        from sessions.services.sessions.lifecycle import NewSession, session_create

        key = ApiKey.objects.select_related("project").earliest("created_at")
        new = NewSession(
            format="anthropic", external_id=str(uuid4()), model="claude-sonnet-4-5", policy={"preset": "off"}
        )
        self.session, _ = session_create(project_id=key.project_id, new=new)
        self.target = Target(key_id=key.pk, project_id=key.project_id, session_id=self.session.pk)
        self.redaction = redaction_of(key.project)

    async def append(self, messages: Messages) -> None:
        await asyncio.to_thread(self._append, messages)

    def _append(self, messages: Messages) -> None:
        from sessions.services.ingestion import messages_ingest
        from sessions.services.push.turns import turn_push
        from sessions.services.push.values import Push

        raw = [json.dumps(message).encode() for message in messages]
        ingested, found = messages_ingest(raw, messages, format="anthropic", redaction=self.redaction)
        turn_push(self.target, Push(messages=ingested, redacted=found))

    async def last(self, count: int) -> Sequence[Any]:
        return await asyncio.to_thread(self._last, count)

    def _last(self, count: int) -> Sequence[Any]:
        from sessions.selectors.api import session_turns, turn_messages, turns_page

        target = self.target
        found = session_turns(
            key_id=target.key_id, project_id=target.project_id, session_id=target.session_id
        )
        turns = turns_page(
            session_id=target.session_id, first=max(0, found.turn_count - count // 2), limit=count
        )
        pages = turn_messages(session_id=target.session_id, turns=turns)
        return [message for page in orjson.loads(orjson.dumps(list(pages.values()))) for message in page]


@asynccontextmanager
async def ours(database: str) -> Any:
    import django

    os.environ.update(
        DATABASE_URL=database,
        DJANGO_SETTINGS_MODULE="contextapp.settings",
        DJANGO_ALLOW_ASYNC_UNSAFE="1",
    )
    django.setup()
    yield OurStore()


class AgentsStore:
    tables = ("agent_sessions", "agent_messages")

    def __init__(self, session: Any) -> None:
        self.session = session

    async def append(self, messages: Messages) -> None:
        await self.session.add_items(messages)

    async def last(self, count: int) -> Sequence[Any]:
        return await self.session.get_items(limit=count)


@asynccontextmanager
async def openai_agents(database: str) -> Any:
    from agents.extensions.memory import SQLAlchemySession

    url = database.replace("postgresql:", "postgresql+asyncpg:")
    session = SQLAlchemySession.from_url(str(uuid4()), url=url, create_tables=True)
    yield AgentsStore(session)
    await session.engine.dispose()


class AdkStore:
    tables = ("sessions", "events", "app_states", "user_states")

    def __init__(self, service: Any, session: Any) -> None:
        self.service, self.session = service, session

    async def append(self, messages: Messages) -> None:
        from google.adk.events import Event
        from google.genai.types import Content, Part

        for message in messages:
            part = Part(text=json.dumps(message["content"]))
            role = "model" if message["role"] == "assistant" else "user"
            event = Event(author=role, content=Content(role=role, parts=[part]))
            await self.service.append_event(self.session, event)

    async def last(self, count: int) -> Sequence[Any]:
        from google.adk.sessions.base_session_service import GetSessionConfig

        session = self.session
        found = await self.service.get_session(
            app_name=session.app_name,
            user_id=session.user_id,
            session_id=session.id,
            config=GetSessionConfig(num_recent_events=count),
        )
        return found.events


@asynccontextmanager
async def google_adk(database: str) -> Any:
    from google.adk.sessions import DatabaseSessionService

    service = DatabaseSessionService(db_url=database.replace("postgresql:", "postgresql+asyncpg:"))
    yield AdkStore(service, await service.create_session(app_name="bench", user_id="bench"))


class LangGraphStore:
    tables = ("checkpoint%",)

    def __init__(self, saver: Any) -> None:
        self.saver = saver
        self.config: Any = {"configurable": {"thread_id": str(uuid4()), "checkpoint_ns": ""}}
        self.thread = dict(self.config["configurable"])
        self.messages: Messages = []

    async def append(self, messages: Messages) -> None:
        await asyncio.to_thread(self._append, messages)

    def _append(self, messages: Messages) -> None:
        from langgraph.checkpoint.base import empty_checkpoint

        self.messages = [*self.messages, *messages]
        version = f"{len(self.messages):032}"
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": self.messages}
        checkpoint["channel_versions"] = {"messages": version}
        self.config = self.saver.put(self.config, checkpoint, {"source": "loop"}, {"messages": version})

    async def last(self, count: int) -> Sequence[Any]:
        found = await asyncio.to_thread(self.saver.get_tuple, {"configurable": self.thread})
        return found.checkpoint["channel_values"]["messages"][-count:]


@asynccontextmanager
async def langgraph(database: str) -> Any:
    from langgraph.checkpoint.postgres import PostgresSaver

    with ExitStack() as stack:
        saver = stack.enter_context(PostgresSaver.from_conn_string(database))
        saver.setup()
        yield LangGraphStore(saver)


#: Each store with the module that it needs.
STORES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "contextapp": ("sessions", ours),
    "openai-agents, SQLAlchemySession": ("agents", openai_agents),
    "google-adk, DatabaseSessionService": ("google.adk", google_adk),
    "LangGraph, PostgresSaver": ("langgraph.checkpoint.postgres", langgraph),
}


async def measure(name: str, database: str, turns: int) -> dict[str, Any]:
    """Append `turns` turns and read the last 40 messages. Return milliseconds, and stored bytes per byte."""
    _, opened = STORES[name]
    appends: list[float] = []
    appended, load = 0, Load(7)
    async with opened(database) as store:
        empty = _size(database, store.tables)
        for _ in range(turns):
            messages = load.messages()
            appended += len(json.dumps(messages))
            appends.append(await _timed(store.append(messages)))
        reads = [await _timed(store.last(40)) for _ in range(30)]
        assert len(await store.last(40)) == 40
    tenth = max(1, turns // 10)
    return {
        "name": name,
        "append_ms": statistics.median(appends),
        "growth": statistics.median(appends[-tenth:]) / statistics.median(appends[:tenth]),
        "last_40_ms": statistics.median(reads),
        "bytes_per_byte": (_size(database, store.tables) - empty) / appended,
    }


async def _timed(work: Awaitable[Any]) -> float:
    began = time.perf_counter()
    await work
    return (time.perf_counter() - began) * 1_000


def _size(database: str, tables: Sequence[str]) -> int:
    """Return the size of the tables with their indexes, after a vacuum and without the search index."""
    size = 0
    with psycopg.connect(database, autocommit=True) as connection:
        for pattern in tables:
            rows = connection.execute(
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE %s"
                " AND relname NOT LIKE 'agent_sessions_search%%'",
                [pattern],
            ).fetchall()
            for (table,) in rows:
                connection.execute(f'VACUUM FULL "{table}"')
                row = connection.execute("SELECT pg_total_relation_size(%s)", [f'"{table}"']).fetchone()
                size += row[0] if row else 0
    return size


def compare(instance: Instance, turns: int) -> list[dict[str, Any]]:
    """Measure the stores in a separate process, each with its database; print and return the figures."""
    command = [sys.executable, "-m", "bench.stores", "--database", instance.database, "--turns", str(turns)]
    environment = {**os.environ, "CONTEXTAPP_HOME": str(instance.home)}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print("The stores could not be measured.", file=sys.stderr)
        return []
    figures: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    headings = (
        "store",
        "append a turn, p50 (ms)",
        "last tenth / first tenth",
        "last 40 (ms)",
        "bytes per byte",
    )
    values = ("append_ms", "growth", "last_40_ms", "bytes_per_byte")
    print_table(headings, [[each["name"], *(f"{each[name]:.2f}" for name in values)] for each in figures])
    print()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", required=True)
    parser.add_argument("--turns", type=int, default=300)
    options = parser.parse_args()
    figures = []
    for name, (module, _) in STORES.items():
        if _is_installed(module):
            database = _empty_database(options.database, name)
            try:
                figures.append(asyncio.run(measure(name, database, options.turns)))
            except Exception as error:
                print(f"{name} failed: {error!r}", file=sys.stderr)
        else:
            print(f"{name} is not installed; see bench/README.md", file=sys.stderr)
    print(json.dumps(figures))


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _empty_database(database: str, name: str) -> str:
    """Create a database for a store. contextapp's tables are migrated, the others create theirs."""
    empty = f"bench_{name.split(',')[0].lower().replace('-', '_')}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{empty}"')
    url = database.replace("/contextapp?", f"/{empty}?")
    if name == "contextapp":
        environment = {**os.environ, "DATABASE_URL": url}
        subprocess.run([sys.executable, "manage.py", "prepare"], cwd=ROOT, env=environment, check=True)
    return url


if __name__ == "__main__":
    main()
