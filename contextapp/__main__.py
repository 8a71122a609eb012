"""`python -m contextapp`: run all of contextapp on this machine. `make run` calls it.

Environment variables configure it; `docs/reference/configuration.md` lists them.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from contextapp import env
from contextapp.embedded import home as homes
from contextapp.embedded import postgres, servers, valkey
from contextapp.embedded.errors import StartError
from contextapp.embedded.programs import write_line
from contextapp.embedded.supervisor import Supervisor

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop(BaseException):
    """A signal to stop has arrived."""


def main() -> int:
    read_arguments()
    for number in STOP_SIGNALS:
        signal.signal(number, stop)
    home = env.home()
    port = env.port()
    try:
        homes.prepare(home)
        with homes.locked(home):
            run(home, env.text("CONTEXTAPP_HOST", "127.0.0.1"), port)
    except StartError as error:
        write_line(str(error))
        return 1
    except Stop:
        write_line("stopped.")
    return 0


def read_arguments() -> None:
    """Reject every argument except --help, so that a misspelled one does not start a server."""
    parser = argparse.ArgumentParser(
        prog="python -m contextapp",
        description="Run contextapp on this machine: database, broker, web server, gateway, worker and "
        "scheduler. "
        "Ctrl-C stops it.",
        epilog="Environment variables configure it: CONTEXTAPP_PORT (8000), CONTEXTAPP_GATEWAY_PORT (8001), "
        "CONTEXTAPP_HOST (127.0.0.1), "
        "CONTEXTAPP_HOME (.contextapp), DATABASE_URL, CELERY_BROKER_URL and others; "
        "see docs/reference/configuration.md.",
    )
    parser.parse_args()


def stop(number: int, frame: object) -> NoReturn:
    """Raise Stop, which ends the child processes on its way to `main`. Ignore all further signals."""
    for other in STOP_SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise Stop


def run(home: Path, host: str, port: int) -> None:
    """Run until a signal arrives. Raises Stop, or StartError if a program does not start."""
    gateway_port = env.gateway_port()
    if gateway_port in {port, 65536}:
        raise StartError("CONTEXTAPP_GATEWAY_PORT must differ from CONTEXTAPP_PORT and be at most 65535.")
    servers.check_port(host, port)
    servers.check_port(host, gateway_port, variable="CONTEXTAPP_GATEWAY_PORT")
    web, worker = servers.web(host, port), servers.worker(home)
    os.chdir(env.ROOT)
    os.environ["CONTEXTAPP_HOME"] = str(home)
    write_line("starting; the first start takes up to a minute")
    with Supervisor() as supervisor:
        start_data(supervisor, home)
        prepare_data()
        # One after the other: if they started together, the first page would be available later.
        supervisor.start(web)
        supervisor.start(servers.gateway(host, gateway_port), worker)
        print_welcome(home, host, port, gateway_port)
        supervisor.watch()


def start_data(supervisor: Supervisor, home: Path) -> None:
    """Start Postgres and Valkey, unless the environment names other servers."""
    programs = []
    if not env.text("DATABASE_URL"):
        postgres.stop_leftover(home)
        postgres.ensure_cluster(home)
        programs.append(postgres.program(home))
    if not env.text("CELERY_BROKER_URL"):
        valkey.stop_leftover(home)
        programs.append(valkey.program(home))
    supervisor.start(*programs)


def prepare_data() -> None:
    """Migrate the database and create the first keys, in a separate process that loads Django."""
    command = [sys.executable, "manage.py", "prepare"]
    done = subprocess.run(  # noqa: S603
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
    )
    if done.returncode == 0:
        sys.stderr.write(done.stderr)
        return
    if reason := one_line_reason(done.stderr):
        raise StartError(reason)
    sys.stderr.write(done.stderr)
    raise StartError("The database could not be prepared; see the messages above.")


def one_line_reason(output: str) -> str | None:
    """Return the reason if the output is the one-line message of a CommandError or InvalidVariable."""
    line = output.strip()
    for prefix in ("CommandError: ", "contextapp: "):
        if line.startswith(prefix) and "\n" not in line:
            return line.removeprefix(prefix)
    return None


def print_welcome(home: Path, host: str, port: int, gateway_port: int) -> None:
    """Print the URLs and the paths of the admin password, the API key and the data folder."""
    name = servers.connect_host(host)
    address = f"http://[{name}]" if ":" in name else f"http://{name}"
    lines = [f"contextapp is running at {address}:{port}/"]
    if (password := home / "admin-password").exists():
        lines.append(f"  Log in       as admin with the password in {password}")
    if (key := home / "api-key").exists():
        lines.append(f"  API key      {key}")
    lines += [f"  Gateway      {address}:{gateway_port}/gateway/"]
    lines += [f"  Data folder  {home}", "Press Ctrl-C to stop."]
    print("\n".join(lines), flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
