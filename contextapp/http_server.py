"""Run the web server or the gateway: `python -m contextapp.http_server web --host 127.0.0.1 --port 8000`.

granian forks the processes that serve requests. They share the memory of everything loaded before the fork:
the code and, for the web server, the tokenizer's vocabulary.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
from dataclasses import dataclass
from functools import partial
from importlib import import_module

from granian import Granian
from granian.constants import Interfaces
from granian.log import LogLevels

from contextapp.embedded.launch import end_with_parent
from contextapp.process_memory import freeze_loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A module with the functions `preload` and `create`, and how granian runs the application."""

    module: str
    interface: Interfaces
    backpressure: int  # connections per process


ROLES = {
    "web": Role(module="contextapp.web", interface=Interfaces.RSGI, backpressure=1_024),
    # Most of the connections are idle between the calls of an agent.
    "gateway": Role(module="gateway.asgi", interface=Interfaces.ASGI, backpressure=10_000),
}


def main() -> None:
    options = read_arguments()
    role = ROLES[options.role]
    server = Granian(
        f"{role.module}:create",
        address=options.host,
        port=options.port,
        interface=role.interface,
        workers=options.workers,
        backpressure=role.backpressure,
        workers_kill_timeout=options.stop_seconds,
        log_level=LogLevels.warning,
        websockets=False,
        respawn_failed_workers=True,
        factory=True,
    )
    if sys.platform == "linux":
        preload(role)
        # If this process is killed, so are those that it forks. Otherwise, they would keep the port.
        os.register_at_fork(after_in_child=partial(end_with_parent, os.getpid(), signal.SIGKILL))
    server.serve()


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m contextapp.http_server")
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument(
        "--stop-seconds",
        type=int,
        default=5,
        help="time for open requests to end before the server is killed",
    )
    return parser.parse_args()


def preload(role: Role) -> None:
    """Load the application in this process. Leaves no thread and no connection, so that it can fork."""
    multiprocessing.set_start_method("fork")
    import_module(role.module).preload()
    freeze_loaded()


if __name__ == "__main__":
    main()
