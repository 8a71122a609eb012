"""A program that runs as a child process: what to run, when it is ready, how it is asked to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from contextapp.embedded import launch
from contextapp.embedded.errors import StartError

LOG_BYTES = 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """`stop_seconds` is how long it may take to end after `stop_signal` before it is killed. Without a
    `log` it writes to the terminal. `owns` is a folder that must belong to whoever runs the program,
    and says that this may not be root. `nice`, from 0 to 19, is how far it stands back for the others where
    they share processors."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    is_ready: Callable[[], bool]
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10
    log: Path | None = None
    owns: Path | None = None
    nice: int = 0


def launched(
    command: tuple[str, ...], *, stop_signal: signal.Signals, owns: Path | None, nice: int = 0
) -> list[str]:
    """The command line that runs `command` so that it ends with this process, and not as root."""
    own = ["--unprivileged", str(owns)] if owns else []
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
        command = launched(
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
                # Ctrl-C reaches the whole process group of the terminal; a group of its own lets the
                # children end in order. Where the kernel does not end them with their parent, a shared
                # group is what makes a kill of the group reach them.
                start_new_session=sys.platform == "linux",
            )

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def wait_until_ready(self, seconds: float = 60) -> None:
        """Raises StartError when the program ends or does not get ready in time."""
        deadline = time.monotonic() + seconds
        while not self.program.is_ready():
            if self.has_ended:
                raise StartError(f"{self.program.name} did not start{self._reason()}")
            if time.monotonic() > deadline:
                raise StartError(f"{self.program.name} was not ready after {seconds:.0f} s{self._reason()}")
            time.sleep(0.02)

    def _reason(self) -> str:
        """Its last words since it was started."""
        log = self.program.log
        if log is None:
            return "; see its messages above."
        words = log.read_bytes()[self.log_start :].decode(errors="replace")
        lines = [line for line in words.splitlines() if line.strip()]
        fatal = [line for line in lines if "FATAL" in line] or lines
        return f": {fatal[-1].strip()} (log: {log})" if fatal else f" (log: {log})"

    def stop(self) -> None:
        if not self.has_ended:
            self.process.send_signal(self.program.stop_signal)
            try:
                self.process.wait(self.program.stop_seconds)
            except subprocess.TimeoutExpired:
                told = f"did not end within {self.program.stop_seconds:g} s and was killed."
                say(f"{self.program.name} {told}")
                self.process.kill()
                self.process.wait()
        self.end_group()

    def end_group(self) -> None:
        """Ends what an ended program has left behind: processes that it had no time to look after."""
        if sys.platform == "linux":  # elsewhere the group is our own
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)


def say(line: str) -> None:
    print(f"contextapp: {line}", file=sys.stderr, flush=True)  # noqa: T201


def open_log(log: Path | None) -> BinaryIO:
    """The stream of the log, begun anew when it has grown large; one older log is kept."""
    if log is None:
        return os.fdopen(os.dup(2), "wb")
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.replace(log.with_suffix(".old.log"))
    return log.open("ab")
