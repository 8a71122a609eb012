"""The web server, the gateway, and the worker with the scheduler: their commands and numbers of processes."""

from __future__ import annotations

import errno
import socket
import sys
import time
from pathlib import Path

from contextapp import env
from contextapp.embedded.errors import StartError
from contextapp.embedded.programs import Program

HTTP_SERVER = (sys.executable, "-m", "contextapp.http_server")
WORKER = (sys.executable, "-m", "contextapp.worker")

#: For glibc. By default, large blocks such as uploads are kept for the process after it has freed the first
#: one, and so is memory of each thread. These settings return it to the system. Requests with a long history
#: may keep up to 4 MiB, because the system takes longer to provide new memory than to receive the request.
RETURN_LARGE_BLOCKS = {"MALLOC_MMAP_THRESHOLD_": str(4 << 20), "MALLOC_TRIM_THRESHOLD_": str(4 << 20)}
RETURN_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 18),
    "MALLOC_ARENA_MAX": "2",
}


def web(host: str, port: int) -> Program:
    workers = env.web_workers()
    return Program(
        name="The web server",
        command=(*HTTP_SERVER, "web", f"--host={host}", f"--port={port}", f"--workers={workers}"),
        # A checkout has no folder of collected static files: they are served from static/.
        environment={"PYTHONWARNINGS": "ignore:No directory at:UserWarning", **RETURN_LARGE_BLOCKS},
        is_ready=lambda: responds_to_http(host, port),
    )


def gateway(host: str, port: int) -> Program:
    """Return the gateway. It runs as one process, because it queues calls in memory and in its folder."""
    seconds = env.integer("CONTEXTAPP_GATEWAY_STOP_SECONDS", 10, minimum=1)
    options = (f"--host={host}", f"--port={port}", f"--stop-seconds={seconds}")
    return Program(
        name="The gateway",
        command=(*HTTP_SERVER, "gateway", *options),
        environment=RETURN_LARGE_BLOCKS,
        is_ready=lambda: responds_to_http(host, port),
        stop_seconds=seconds + 5,
    )


def worker(home: Path) -> Program:
    """Return the worker, which also runs the scheduler."""
    processes = env.worker_processes()
    return Program(
        name="The worker",
        # The lock of the data folder already prevents a second scheduler.
        command=(*WORKER, f"--processes={processes}", f"--schedule={home / 'beat-schedule'}"),
        # Celery warns root about unsafe serializers. The tasks use JSON, which is safe.
        environment={"PYTHONWARNINGS": "ignore:You're running the worker", **RETURN_MEMORY},
        is_ready=lambda: True,
        stop_seconds=20,
        # Agents wait for the web server, not for the worker.
        nice=env.integer("CONTEXTAPP_WORKER_NICE", 10, maximum=19),
    )


def responds_to_http(host: str, port: int) -> bool:
    """Return whether the web server responds, with any status.

    An accepted connection is not enough: the port is bound before a process serves it.
    """
    try:
        with socket.create_connection((connect_host(host), port), timeout=1) as client:
            client.sendall(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")
            return client.recv(5) == b"HTTP/"
    except OSError:
        return False


def connect_host(host: str) -> str:
    """Return the host at which clients on this machine reach a server that is bound to `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104


def check_port(host: str, port: int, *, variable: str = "CONTEXTAPP_PORT", patience: float = 2) -> None:
    """Raise StartError if the port cannot be bound.

    Retries for `patience` seconds, because the server of an instance that was just killed may still be
    shutting down.
    """
    deadline = time.monotonic() + patience
    while (error := bind_error(host, port)) is not None:
        if time.monotonic() > deadline:
            is_address = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
            advice = (
                "Set CONTEXTAPP_HOST to an address of this machine"
                if is_address
                else f"Set {variable} to another port"
            )
            reason = (error.strerror or str(error)).lower()
            raise StartError(f"Port {port} of {host} cannot be used: {reason}. {advice}.")
        time.sleep(0.1)


def bind_error(host: str, port: int) -> OSError | None:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen()
    except OSError as error:
        return error
    return None
