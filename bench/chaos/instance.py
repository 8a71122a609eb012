"""An instance in a small, separate file system, and its processes. Linux only."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from bench.chaos.clock import Clock
from bench.instance import free_port
from bench.processes import memory, part_of, processes

ROOT = Path(__file__).resolve().parents[2]

#: Bytes of the file system that holds the data folder, if it can be mounted.
DISK_BYTES = 900 << 20

#: Seconds to wait for the instance to start or to recover.
PATIENCE = 400.0

#: In the memory of a process, what it has alone and its share of mapped files.
_MEMORY = ("Pss_Anon:", "Pss_File:")


class Instance:
    """`python -m contextapp` with a data folder in a temporary file system."""

    def __init__(self, provider: str) -> None:
        """Prepare an instance whose gateway forwards to the URL `provider`."""
        self._provider, self.clock = provider, Clock()
        self.folder = Path(tempfile.mkdtemp(prefix="contextapp-chaos-"))
        self.has_disk = self._mount()
        self.home = self.folder / "home"
        self.port, self.gateway_port = free_port(), free_port()
        self.log = Path(tempfile.mkstemp(prefix="contextapp-chaos-", suffix=".log")[1])
        self.process: subprocess.Popen[bytes] | None = None

    def _mount(self) -> bool:
        options = ["-o", f"size={DISK_BYTES},mode=0711", "tmpfs", str(self.folder)]
        command = ["mount", "-t", "tmpfs", *options]
        return os.geteuid() == 0 and subprocess.run(command, check=False, capture_output=True).returncode == 0

    def start(self) -> None:
        """Start the instance and wait until it is ready."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("CONTEXTAPP_") and name not in {"DATABASE_URL", "CELERY_BROKER_URL"}
        }
        environment |= {
            "CONTEXTAPP_HOME": str(self.home),
            "CONTEXTAPP_PORT": str(self.port),
            "CONTEXTAPP_GATEWAY_PORT": str(self.gateway_port),
            "CONTEXTAPP_GATEWAY_ANTHROPIC_URL": self._provider,
            "DJANGO_SETTINGS_MODULE": "contextapp.settings",
            **self.clock.environment,
        }
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "contextapp"],
                cwd=ROOT,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.wait_until_ready()

    def wait_until_ready(self) -> float:
        """Return the seconds until it was ready. Raises SystemExit after `PATIENCE`."""
        begun = time.monotonic()
        while time.monotonic() - begun < PATIENCE:
            if self.status(self.port, "/readyz") == self.status(self.gateway_port, "/healthz") == 200:
                return time.monotonic() - begun
            time.sleep(0.3)
        raise SystemExit(f"not ready within {PATIENCE:.0f} s; see {self.log}")

    @staticmethod
    def status(port: int, path: str) -> int:
        """Return the status of a GET request, 0 without a response."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()

    @property
    def key(self) -> str:
        return (self.home / "api-key").read_text().strip()

    def processes(self) -> dict[int, str]:
        """Return the command lines of the supervisor and of all processes below it."""
        assert self.process is not None
        return processes(self.process.pid)

    def part(self, name: str) -> list[int]:
        """Return the processes of a part."""
        return sorted(pid for pid, command in self.processes().items() if part_of(command) == name)

    def kill_everything(self) -> None:
        """Kill all processes at once, the supervisor first."""
        assert self.process is not None
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def memory(self) -> dict[str, int]:
        """Return the proportional set size of each part in MB, without what processes of Postgres share.

        Its shared buffers fill up to a fixed size.
        """
        assert self.process is not None
        sizes = memory(self.process.pid, lines=_MEMORY)
        return {name: size // 1_000_000 for name, size in sizes.items()}

    def stop(self) -> None:
        """Stop the instance and remove its data."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill_everything()
        if self.has_disk:
            subprocess.run(["umount", "-l", str(self.folder)], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.clock.remove()
