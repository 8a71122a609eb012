"""Measure what an instance takes: bytes in Postgres, and CPU and memory while it is idle."""

from __future__ import annotations

import json
import time
from pathlib import Path

import psycopg

from bench.instance import Instance
from bench.load import create_session, messages_pushed, push_concurrently
from bench.processes import cpu_seconds, memory, part_of, processes
from bench.pushes import BUDGET
from bench.table import Row

#: Starting the instance writes to the database; the scheduler slows down one minute after the last write.
_START_SECONDS = 70

#: No other part pushes the same texts: a project stores equal large contents once.
_SEED = 100_000

#: The tables by what they store. The others are derived; the search index has its own limit.
_STORED = {
    "message": "messages",
    "blob": "contents over 16 KB",
    "edit": "edits, with the texts of recaps",
    "turn": "turns",
    "recap": "recaps",
    "compaction": "compactions",
    "promptsnapshot": "prompt snapshots",
    "agentsession": "sessions",
}
_DERIVED = "derived"

_SIZES = """
SELECT substr(relname, length('agent_sessions_') + 1), pg_total_relation_size(oid)
  FROM pg_class
 WHERE relkind = 'r' AND relname LIKE 'agent_sessions_%' AND relname NOT LIKE 'agent_sessions_search%'
"""

#: Sessions from which the worker has not derived everything.
_PENDING = """
SELECT count(*)
  FROM agent_sessions_agentsession s
  LEFT JOIN agent_sessions_toolscan t ON t.session_id = s.id
  LEFT JOIN agent_sessions_referencescan r ON r.session_id = s.id
  LEFT JOIN agent_sessions_sessionprofile p ON p.session_id = s.id
 WHERE s.external_id LIKE 'stored-%'
   AND (t.position IS DISTINCT FROM s.message_count OR p.turn_count IS DISTINCT FROM s.turn_count
        OR coalesce(r.position, s.message_count) <> s.message_count)
"""
_DERIVE_SECONDS = 600


def stored(instance: Instance, turns: int) -> list[Row]:
    """Push 16 new sessions with compactions; compare the growth of the tables with the messages' bytes.

    Waits until the worker has filled the derived tables. Also prints the growth of each table.
    """
    present = Row("bytes stored per byte pushed, before VACUUM FULL", "", target=0.60)
    vacuumed = Row("bytes stored per byte pushed, after VACUUM FULL", "", target=0.45)
    sessions = 16
    with psycopg.connect(instance.database, autocommit=True) as connection:
        connection.execute("VACUUM FULL")
        before = _sizes(connection)
        http = instance.ours()
        paths = [create_session(http, f"stored-{number}", BUDGET) for number in range(sessions)]
        push_concurrently(instance.port, instance.key, paths, turns // sessions, is_ours=True, seed=_SEED)
        _wait_until_derived(connection)
        grown = _sizes(connection)
        connection.execute("VACUUM FULL")
        compact = _sizes(connection)
    pushed = sum(
        len(json.dumps(message)) for message in messages_pushed(paths, turns // sessions, seed=_SEED)
    )
    for name in before:
        shares = [(sizes[name] - before[name]) / pushed for sizes in (grown, compact)]
        print(f"| {name} | {shares[0]:.2f} | {shares[1]:.2f} |")
    for row, sizes in ((present, grown), (vacuumed, compact)):
        row.ours.append((sum(sizes.values()) - sum(before.values())) / pushed)
    return [present, vacuumed]


def _sizes(connection: psycopg.Connection) -> dict[str, int]:
    """Return the bytes of the tables by what they store."""
    sizes = dict.fromkeys((*_STORED.values(), _DERIVED), 0)
    for table, size in connection.execute(_SIZES):
        sizes[_STORED.get(table, _DERIVED)] += size
    return sizes


def _wait_until_derived(connection: psycopg.Connection) -> None:
    for _ in range(_DERIVE_SECONDS):
        [pending] = connection.execute(_PENDING).fetchone() or [0]
        if not pending:
            return
        time.sleep(1)
    raise SystemExit("the worker did not fill the derived tables")


def idle(instance: Instance, rounds: int, seconds: float) -> list[Row]:
    """Measure the CPU of the worker and the scheduler, and the memory of all processes. Linux only."""
    cpu = Row("CPU of worker and scheduler, idle", "% of a core", target=1)
    pss = Row("memory of all processes, idle (PSS)", "MB", target=550)
    if not Path("/proc/self/smaps_rollup").exists():
        return []
    time.sleep(_START_SECONDS)
    for _ in range(rounds):
        commands = processes(instance.pid)
        background = [pid for pid, command in commands.items() if part_of(command) == "worker"]
        before = cpu_seconds(background)
        time.sleep(seconds)
        cpu.ours.append((cpu_seconds(background) - before) / seconds * 100)
        pss.ours.append(sum(memory(instance.pid).values()) / 1e6)
    return [cpu, pss]
