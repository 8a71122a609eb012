"""A separate instance of contextapp in a temporary folder, and the bare views on the same Postgres."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.bare_table import CREATE
from bench.http import Http
from bench.load import ROOT
from contextapp.embedded.home import database_url


@dataclass(frozen=True)
class Instance:
    """Where both listen, the API key, the data folder, and the process that started contextapp."""

    port: int
    bare_port: int
    key: str
    home: Path
    pid: int

    @property
    def database(self) -> str:
        """The URL of the database."""
        return database_url(self.home)

    def ours(self) -> Http:
        return Http(self.port, self.key)

    def bare(self) -> Http:
        return Http(self.bare_port, self.key)


@contextmanager
def product(port: int, gateway_port: int, **settings: str) -> Iterator[tuple[Path, int]]:
    """Start contextapp with empty data. Yield its data folder, and the process that started it."""
    home = Path(tempfile.mkdtemp(prefix="ctxbench"))
    environment = {**own_environment(), **settings}
    environment |= {"CONTEXTAPP_PORT": str(port), "CONTEXTAPP_GATEWAY_PORT": str(gateway_port)}
    environment["CONTEXTAPP_HOME"] = str(home)
    process = subprocess.Popen([sys.executable, "-m", "contextapp"], cwd=ROOT, env=environment)
    try:
        wait(port, process)
        wait(gateway_port, process)
        yield home, process.pid
    finally:
        process.terminate()
        process.wait(60)
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def started(port: int) -> Iterator[Instance]:
    """Start contextapp, and the bare views with the same numbers of processes and threads."""
    bare_port = port + 2
    with product(port, port + 1) as (home, pid):
        database = database_url(home)
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(CREATE)
        bare = _bare(bare_port, {**own_environment(), "DATABASE_URL": database})
        try:
            wait(bare_port, bare)
            key = (home / "api-key").read_text().strip()
            yield Instance(port=port, bare_port=bare_port, key=key, home=home, pid=pid)
        finally:
            bare.terminate()
            bare.wait(60)


def own_environment() -> dict[str, str]:
    """Return the environment without the variables that would lead to other servers.

    With `PYTHONDONTWRITEBYTECODE`, each process would compile all modules and keep the memory that this
    takes. `make run` removes it as well.
    """
    names = ("DATABASE_URL", "CELERY_BROKER_URL", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if name not in names}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _bare(port: int, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "granian", "--interface", "wsgi", "--port", str(port)]
    command += ["--workers", "2", "--blocking-threads", "4", "--no-ws", "--log-level", "error"]
    command += ["--workers-kill-timeout", "2", "bench.bare:application"]
    return subprocess.Popen(command, cwd=ROOT, env=environment)


def wait(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the process responds on the port."""
    for _ in range(3_000):
        if process.poll() is not None:
            break
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as probe:
                probe.sendall(b"GET /none HTTP/1.0\r\nHost: localhost\r\n\r\n")
                if probe.recv(4) == b"HTTP":
                    return
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit(f"no response on port {port}")
