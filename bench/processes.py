"""The processes of an instance: their parts, CPU time and memory. Linux only."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

#: The parts of an instance, by a text in the command line; the first that matches. The scheduler is a process
#: of the worker.
PARTS = {
    "web": "http_server web",
    "gateway": "http_server gateway",
    "worker": "contextapp.worker",
    "valkey": "valkey-server",
    "postgres": "postgres",
}

#: In `smaps_rollup`: the memory of a process, with shared pages divided among the processes.
PSS = ("Pss:",)


def processes(pid: int) -> dict[int, str]:
    """Return the command lines of a process and its descendants."""
    return {each: _command(each) for each in _family(pid)}


def part_of(command: str) -> str:
    """Return the part of an instance to which a process with this command line belongs."""
    return next((name for name, text in PARTS.items() if text in command), "other")


def memory(pid: int, *, lines: Collection[str] = PSS) -> dict[str, int]:
    """Return the bytes of each part of an instance: the sums of these lines of `smaps_rollup`."""
    sizes = dict.fromkeys((*PARTS, "other"), 0)
    for each, command in processes(pid).items():
        with suppress(OSError):  # it has ended
            for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines():
                if line.startswith(tuple(lines)):
                    sizes[part_of(command)] += int(line.split()[1]) * 1024
    return sizes


def cpu_seconds(pids: Collection[int]) -> float:
    """Return the CPU time of processes, without children that have ended. Skips those that have ended."""
    ticks = 0
    for pid in pids:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _family(pid: int) -> Iterator[int]:
    yield pid
    with suppress(OSError):  # a thread or the process has ended
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in children.read_text().split():
                yield from _family(int(child))


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""
