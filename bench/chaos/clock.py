"""Wrong clocks: a preloaded library shifts the time that the processes of an instance read."""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

#: The entry of the table that applies to every process.
EVERYTHING = 0

_SOURCE = Path(__file__).with_name("clock.c")


class Clock:
    """The table of shifts. `is_available` is false without a C compiler."""

    def __init__(self) -> None:
        # Not in the file system that is filled: reading a new page of the table would fail.
        self._folder = Path(tempfile.mkdtemp(prefix="contextapp-chaos-clock-"))
        self._folder.chmod(0o755)
        self._library, self._table = self._folder / "clock.so", self._folder / "table"
        with self._table.open("wb") as table:
            table.truncate(8 * (1 + int(Path("/proc/sys/kernel/pid_max").read_text())))
        self.is_available = self._compile()

    def _compile(self) -> bool:
        compiler = shutil.which("cc")
        options = ["-shared", "-fPIC", "-O2", "-o", str(self._library), str(_SOURCE), "-ldl"]
        return compiler is not None and subprocess.run([compiler, *options], check=False).returncode == 0

    @property
    def environment(self) -> dict[str, str]:
        """The variables of processes whose clock can be shifted."""
        if not self.is_available:
            return {}
        return {"LD_PRELOAD": str(self._library), "CHAOS_CLOCK": str(self._table)}

    def shift(self, entries: Iterable[int], seconds: int) -> None:
        """Shift the clocks of processes, or of `EVERYTHING`."""
        with self._table.open("r+b") as table:
            for entry in entries:
                table.seek(8 * entry)
                table.write(struct.pack("=q", seconds))

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
