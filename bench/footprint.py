"""Measure what an instance takes: bytes in Postgres, and CPU and memory while it is idle."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg

from bench.instance import Instance
from bench.load import create_session, messages_pushed, push_concurrently
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

#: In the command lines of the worker and the scheduler.
_BACKGROUND = re.compile(rb"contextapp\.(worker|scheduler)")


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
    memory = Row("memory of all processes, idle (PSS)", "MB", target=550)
    if not Path("/proc/self/smaps_rollup").exists():
        return []
    time.sleep(_START_SECONDS)
    for _ in range(rounds):
        pids = list(processes(instance.pid))
        background = [pid for pid in pids if _BACKGROUND.search(_command(pid))]
        before = sum(map(_cpu_seconds, background))
        time.sleep(seconds)
        cpu.ours.append((sum(map(_cpu_seconds, background)) - before) / seconds * 100)
        memory.ours.append(sum(map(_pss, processes(instance.pid))) / 1e6)
    return [cpu, memory]


#: The parts of an instance, by a text in the command line; the first that matches.
PARTS = {
    "web": b"http_server web",
    "gateway": b"http_server gateway",
    "worker": b"contextapp.worker",
    "scheduler": b"contextapp.scheduler",
    "valkey": b"valkey-server",
    "postgres": b"postgres",
}


def instance_memory(instance: Instance) -> dict[str, int]:
    """Return the bytes (PSS) of each part of an instance. Linux only."""
    sizes = dict.fromkeys((*PARTS, "other"), 0)
    for pid in list(processes(instance.pid)):
        command = _command(pid)
        sizes[next((name for name, text in PARTS.items() if text in command), "other")] += _pss(pid)
    return sizes


def _command(pid: int) -> bytes:
    """Return the command line of a process, empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return b""


def processes(pid: int) -> Iterator[int]:
    """Yield a process and its descendants."""
    yield pid
    with suppress(OSError):  # a thread or the process has ended
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in children.read_text().split():
                yield from processes(int(child))


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, without children that have ended."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _pss(pid: int) -> int:
    """Return the bytes of a process in memory, with shared pages divided among the processes.

    Returns 0 if the process has ended.
    """
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
