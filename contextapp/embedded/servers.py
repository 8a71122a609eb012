"""The web server, the worker and the clock: how they are started, and how many of each."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

from contextapp.embedded.errors import StartError
from contextapp.embedded.programs import Program

CELERY = (sys.executable, "-m", "celery", "--quiet", "-A")


def web(host: str, port: int) -> Program:
    options = {
        "interface": "wsgi",
        "host": host,
        "port": str(port),
        "workers": os.environ.get("CONTEXTAPP_WEB_WORKERS", "2"),
        "blocking-threads": os.environ.get("CONTEXTAPP_WEB_THREADS", "4"),
        "log-level": "warning",
        "workers-kill-timeout": "5",
    }
    arguments = (part for name, value in options.items() for part in (f"--{name}", value))
    flags = ("--no-ws", "--respawn-failed-workers")
    return Program(
        name="The web server",
        command=(sys.executable, "-m", "granian", *arguments, *flags, "contextapp.wsgi:application"),
        # A checkout serves its static files from where they lie and has collected none.
        environment={"PYTHONWARNINGS": "ignore:No directory at:UserWarning"},
        is_ready=lambda: answers(host, port),
    )


def worker() -> Program:
    options = {"concurrency": os.environ.get("CONTEXTAPP_WORKERS", "2"), "loglevel": "WARNING"}
    arguments = (f"--{name}={value}" for name, value in options.items())
    # Gossip, mingle and heartbeat are for workers that watch each other; here is one.
    flags = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    return Program(
        name="The worker",
        command=(*CELERY, "contextapp.celery", "worker", *flags, *arguments),
        # A warning about root is of no use here: tasks are JSON, which runs nothing.
        environment={"PYTHONWARNINGS": "ignore:You're running the worker"},
        is_ready=lambda: True,
        stop_seconds=20,
        nice=worker_nice(),
    )


def worker_nice() -> int:
    """Nobody waits for what the worker does; agents wait for their pushes. Raises StartError."""
    text = os.environ.get("CONTEXTAPP_WORKER_NICE") or "10"
    if not text.isdecimal() or int(text) > 19:
        raise StartError(f"CONTEXTAPP_WORKER_NICE is {text!r}, which is not a whole number from 0 to 19.")
    return int(text)


def beat(home: Path) -> Program:
    """The clock of the periodic tasks: a program of its own, so that it is started again when it alone dies.
    Without it nothing that was lost would be found."""
    # The data folder is held by this instance alone: no file has to say who runs.
    options = ("--loglevel=WARNING", f"--schedule={home / 'beat-schedule'}", "--pidfile=")
    return Program(
        name="The clock", command=(*CELERY, "contextapp.clock", "beat", *options), is_ready=lambda: True
    )


def answers(host: str, port: int) -> bool:
    """Whether HTTP comes back, whatever it says. A connection alone proves little: the port is bound
    before there is a process that serves it."""
    try:
        with socket.create_connection((reachable(host), port), timeout=1) as client:
            client.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
            return client.recv(5) == b"HTTP/"
    except OSError:
        return False


def reachable(host: str) -> str:
    """The address at which a server bound to `host` is reached from this machine."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104


def check_port(host: str, port: int, *, patience: float = 2) -> None:
    """Raises StartError when the address cannot be bound. The server of an instance that was killed a
    moment ago may still be leaving, hence the patience (seconds)."""
    deadline = time.monotonic() + patience
    while (reason := bind_error(host, port)) is not None:
        if time.monotonic() > deadline:
            raise StartError(
                f"Port {port} of {host} cannot be used: {reason}. Set CONTEXTAPP_PORT to another one."
            )
        time.sleep(0.1)


def bind_error(host: str, port: int) -> str | None:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return None
