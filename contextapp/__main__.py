"""`python -m contextapp`: run the whole product on this machine. `make run` ends up here.

The environment configures it; `docs/configuration.md` lists the variables.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from contextapp.embedded import home as homes
from contextapp.embedded import postgres, servers, valkey
from contextapp.embedded.errors import StartError
from contextapp.embedded.programs import say
from contextapp.embedded.supervisor import Supervisor

ROOT = Path(__file__).resolve().parent.parent


class Stop(BaseException):
    """Somebody asked us to end."""


def main() -> int:
    read_arguments()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    home = Path(os.environ.get("CONTEXTAPP_HOME") or ROOT / ".contextapp").absolute()
    try:
        homes.prepare(home)
        with homes.held(home):
            run(home, os.environ.get("CONTEXTAPP_HOST") or "127.0.0.1", port_number())
    except StartError as error:
        say(str(error))
        return 1
    except Stop:
        say("stopped.")
    return 0


def read_arguments() -> None:
    """There are none but --help: a misspelt one must not start a server."""
    parser = argparse.ArgumentParser(
        prog="python -m contextapp",
        description="Run contextapp on this machine: database, broker, web server, worker. Ctrl-C stops it.",
        epilog="The environment configures it: CONTEXTAPP_PORT (8000), CONTEXTAPP_HOST (127.0.0.1), "
        "CONTEXTAPP_HOME (.contextapp), DATABASE_URL, CELERY_BROKER_URL and the rest of "
        "docs/configuration.md.",
    )
    parser.parse_args()


def stop(number: int, frame: object) -> NoReturn:
    """The first signal unwinds to `main`, ending the children on the way; more of them do not hurry it."""
    for again in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(again, signal.SIG_IGN)
    raise Stop


def port_number() -> int:
    text = os.environ.get("CONTEXTAPP_PORT") or "8000"
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise StartError(f"CONTEXTAPP_PORT is {text!r}, which is not a port number.")
    return int(text)


def run(home: Path, host: str, port: int) -> None:
    """Until a signal: raises Stop, or StartError when something does not start or keeps ending."""
    servers.check_port(host, port)
    web, worker, beat = servers.web(host, port), servers.worker(), servers.beat(home)
    os.chdir(ROOT)
    os.environ["CONTEXTAPP_HOME"] = str(home)
    with Supervisor() as supervisor:
        start_data(supervisor, home)
        prepare_data()
        # One after the other: side by side they would share the processor, and the first page come later.
        supervisor.start(web)
        supervisor.start(worker, beat)
        welcome(home, host, port)
        supervisor.watch()


def start_data(supervisor: Supervisor, home: Path) -> None:
    """Start what the environment does not bring along."""
    programs = []
    if not os.environ.get("DATABASE_URL"):
        postgres.stop_leftover(home)
        postgres.ensure_cluster(home)
        programs.append(postgres.program(home))
    if not os.environ.get("CELERY_BROKER_URL"):
        valkey.stop_leftover(home)
        programs.append(valkey.program(home))
    supervisor.start(*programs)


def prepare_data() -> None:
    """Tables, and at the first start the keys. A process of its own, since this one stays without Django."""
    command = [sys.executable, "manage.py", "prepare"]
    done = subprocess.run(  # noqa: S603
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
    )
    label, _, reason = done.stderr.strip().rpartition("CommandError: ")
    if done.returncode != 0 and reason and not label:
        raise StartError(reason)
    sys.stderr.write(done.stderr)
    if done.returncode != 0:
        raise StartError("The data could not be prepared; the messages above say why.")


def welcome(home: Path, host: str, port: int) -> None:
    shown = servers.reachable(host)
    address = f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"
    lines = [f"contextapp runs at {address}"]
    if (password := home / "admin-password").exists():
        lines.append(f"  log in    as admin; the password stands in {password}")
    if (key := home / "api-key").exists():
        lines.append(f"  API key   {key}")
    lines += [f"  data      {home}", "Ctrl-C stops it."]
    print("\n".join(lines), flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
