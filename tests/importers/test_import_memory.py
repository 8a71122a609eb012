"""The memory that `import_sessions` needs for a large log."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.importers.logs import block, jsonl, text, user

_MEGABYTE = 1 << 20


def peak(log: Path) -> int:
    """Return the largest memory of a dry run in bytes."""
    command = [sys.executable, "manage.py", "import_sessions", "--dry-run", "-v", "0", str(log)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss * 1024


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss differs")
def test_a_short_message_takes_little_more_memory_than_its_json(tmp_path: Path) -> None:
    small, large, count = tmp_path / "small.jsonl", tmp_path / "large.jsonl", 15_000
    # Both logs load the same modules.
    small.write_bytes(jsonl(user("Go on", "u"), block("m", text("Done."), "a")).data)
    records = (
        record
        for number in range(count)
        for record in (user(f"Step {number}", f"u{number}"), block(f"m{number}", text("Done."), f"a{number}"))
    )
    large.write_bytes(jsonl(*records).data)
    assert peak(large) - peak(small) < 110 * _MEGABYTE
