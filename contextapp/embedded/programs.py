"""Child processes: command, readiness check and shutdown."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from contextapp.embedded import launch
from contextapp.embedded.errors import StartError

LOG_BYTES = 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program to run as a child process.

    It is killed if it has not ended `stop_seconds` after `stop_signal`. Without a `log` it writes to the
    terminal. A program with `owns` does not run as root, but as the owner of these folders. `nice` is its
    niceness, from 0 to 19; higher values favor the other programs.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    is_ready: Callable[[], bool]
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10
    log: Path | None = None
    owns: tuple[Path, ...] = ()
    nice: int = 0


def launch_command(
    command: tuple[str, ...], *, stop_signal: signal.Signals, owns: Sequence[Path], nice: int = 0
) -> list[str]:
    """Return the command line that runs `command` so that it ends together with this process.

    With `owns` it does not run as root.
    """
    own = [f"--unprivileged={folder}" for folder in owns]
    options = ["--parent", str(os.getpid()), "--signal", stop_signal.name, "--nice", str(nice), *own]
    return [sys.executable, "-I", "-S", launch.__file__, *options, "--", *command]


class Child:
    """A running program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.log_start = 0
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        program = self.program
        command = launch_command(
            program.command, stop_signal=program.stop_signal, owns=program.owns, nice=program.nice
        )
        with open_log(program.log) as log:
            self.log_start = log.seek(0, os.SEEK_END) if program.log else 0
            return subprocess.Popen(  # noqa: S603
                command,
                env={**os.environ, **program.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C reaches the whole process group of the terminal. In a separate group, the children
                # are stopped in order. Systems other than Linux do not end children with their parent:
                # there they share its group, so that killing the group reaches them.
                start_new_session=sys.platform == "linux",
            )

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def wait_until_ready(self, seconds: float = 180) -> None:
        """Raise StartError if the program ends or is not ready in time."""
        deadline = time.monotonic() + seconds
        while not self.program.is_ready():
            if self.has_ended:
                raise StartError(f"{self.program.name} did not start{self.reason()}")
            if time.monotonic() > deadline:
                raise StartError(f"{self.program.name} was not ready after {seconds:.0f} s{self.reason()}")
            time.sleep(0.02)

    def reason(self) -> str:
        """Return the last line of the log since the start, preferably a fatal error."""
        log = self.program.log
        if log is None:
            return "; see the messages above"
        output = log.read_bytes()[self.log_start :].decode(errors="replace")
        lines = [line for line in output.splitlines() if line.strip()]
        fatal = [line for line in lines if "FATAL" in line] or lines
        return f": {fatal[-1].strip()} (log: {log})" if fatal else f" (log: {log})"

    def stop(self) -> None:
        if not self.has_ended:
            self.process.send_signal(self.program.stop_signal)
            try:
                self.process.wait(self.program.stop_seconds)
            except subprocess.TimeoutExpired:
                name, seconds = self.program.name, self.program.stop_seconds
                write_line(f"{name} did not stop within {seconds:g} s and was killed.")
                self.process.kill()
                self.process.wait()
        self.kill_group()

    def kill_group(self) -> None:
        """Kill the remaining child processes of the program."""
        if sys.platform == "linux":  # on other systems this is the group of the supervisor
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)


def write_line(line: str) -> None:
    """Write a message of the supervisor to stderr."""
    print(f"contextapp: {line}", file=sys.stderr, flush=True)  # noqa: T201


def open_log(log: Path | None) -> BinaryIO:
    """Open the log for appending. A large log is rotated first; one old log is kept."""
    if log is None:
        return os.fdopen(os.dup(2), "wb")
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.replace(log.with_suffix(".old.log"))
    return log.open("ab")
