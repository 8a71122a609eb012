"""An instance of contextapp as `make run` starts it."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Variables that a developer's shell or the tests may have set.
UNSET = (
    "DATABASE_URL",
    "CELERY_BROKER_URL",
    "CONTEXTAPP_HOME",
    "CONTEXTAPP_SECRET_KEY",
    "CONTEXTAPP_HOST",
    "CONTEXTAPP_GATEWAY_PORT",
    "PROMETHEUS_MULTIPROC_DIR",  # instances clear this folder at the start, and the tests use it
)
START_SECONDS = 180  # a slow start on a busy machine is not a failure


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def inherited() -> dict[str, str]:
    """Return the environment of the tests without what would point an instance to their servers."""
    return {name: value for name, value in os.environ.items() if name not in UNSET}


class Instance:
    """A `python -m contextapp` that runs the code in `root` and writes its output to a file."""

    def __init__(
        self, home: Path, output: Path, *, root: Path = ROOT, port: int | None = None, **environment: str
    ) -> None:
        self.home = home
        self.output = output
        self.root = root
        self.port = port or free_port()
        self.gateway_port = free_port()
        ports = {"CONTEXTAPP_PORT": str(self.port), "CONTEXTAPP_GATEWAY_PORT": str(self.gateway_port)}
        own = {"DJANGO_SETTINGS_MODULE": "contextapp.settings", "CONTEXTAPP_HOME": str(home)}
        with output.open("wb") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "contextapp"],
                cwd=root,
                env=inherited() | own | ports | environment,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def printed(self) -> str:
        return self.output.read_text()

    def wait_until_up(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while "contextapp is running at" not in self.printed:
            assert self.process.poll() is None, f"it exited:\n{self.printed}"
            assert time.monotonic() < deadline, f"it did not start:\n{self.printed}"
            time.sleep(0.05)

    def wait(self) -> int:
        return self.process.wait(START_SECONDS)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.wait()

    def kill_group(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def manage(self, *arguments: str) -> str:
        """Return the output of `manage.py`, run on the data of this instance."""
        environment = inherited() | {
            "DJANGO_SETTINGS_MODULE": "contextapp.settings",
            "CONTEXTAPP_HOME": str(self.home),
        }
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.check_output(command, cwd=self.root, env=environment, text=True)

    def status(self) -> int:
        """Return the HTTP status of the login page."""
        address = f"http://127.0.0.1:{self.port}/login/"
        try:
            with urllib.request.urlopen(address, timeout=START_SECONDS) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code


@contextmanager
def running(instance: Instance) -> Iterator[Instance]:
    """Wait until the instance is up, and stop it at the end of the block, without an error."""
    try:
        instance.wait_until_up()
        yield instance
    finally:
        if instance.process.poll() is None:
            assert instance.stop() == 0, instance.printed


def children(pid: int) -> dict[int, str]:
    """Return the command lines of all descendants of `pid`. Linux only."""
    parents, commands = {}, {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            commands[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
    below, found = {pid}, {}
    while more := {child for child, parent in parents.items() if parent in below} - set(found):
        found |= {child: commands.get(child, "") for child in more}
        below = more
    return found


def alive(pids: Iterable[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}").exists() and not is_zombie(pid)}


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
