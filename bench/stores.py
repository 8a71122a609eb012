"""Compare the stores of agent frameworks with contextapp's, in-process and on the same Postgres.

Each store gets the same turns (a tool call and its result) one after the other. Only contextapp counts
tokens, redacts secrets and can rebuild the prompt of each turn; the others store the messages. LangGraph's
saver stores a checkpoint of the whole state after each turn, as its graphs do.

`python -m bench --stores` runs this module in a separate process: `python -m bench.stores --database URL`.
Stores that are not installed are skipped; bench/README.md explains how to install them.
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
from collections.abc import Awaitable, Sequence
from typing import Any

import psycopg

from bench.frameworks import STORES
from bench.instance import Instance
from bench.load import ROOT, Load
from bench.table import print_table


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
