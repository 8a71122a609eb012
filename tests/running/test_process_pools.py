"""The processes of a pool: they read logs, and record calls of the gateway."""

from __future__ import annotations

import subprocess
import sys

import pytest

PARENT = """
import os
from sessions.services.processes import process_pool

with process_pool(2) as pool:
    print(pool.submit(os.getpid).result(), flush=True)
    input()
"""


@pytest.mark.processes
def test_they_end_if_their_parent_is_killed() -> None:
    pipe = subprocess.PIPE
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdin=pipe, stdout=pipe)
    assert parent.stdout is not None
    assert parent.stdout.readline().strip().isdigit()
    parent.kill()
    parent.communicate(timeout=60)  # all of them inherited the pipe, so it is closed when the last one ends
