"""The processes that read logs."""

from __future__ import annotations

import subprocess
import sys

import pytest

READING = """
import os
from importers.processes import process_pool

with process_pool(2) as pool:
    print(pool.submit(os.getpid).result(), flush=True)
    input()
"""


@pytest.mark.processes
def test_they_end_if_the_command_is_killed() -> None:
    pipe = subprocess.PIPE
    command = subprocess.Popen([sys.executable, "-c", READING], stdin=pipe, stdout=pipe)
    assert command.stdout is not None
    assert command.stdout.readline().strip().isdigit()
    command.kill()
    command.communicate(timeout=60)  # all of them inherited the pipe, so it is closed when the last one ends
