"""A worker returns the memory of its tasks to the system."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

#: Runs a task that keeps a few of many small values, which prevents glibc from returning the others.
_PROGRAM = """
from pathlib import Path
from contextapp.celery import app

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4_096

kept = []

@app.task(name="grow")
def grow():
    values = [bytes(1_000 + number % 100) for number in range(200_000)]
    kept.extend(values[::1_000])
    return resident()

before = resident()
print(before, grow.apply().get(), resident())
"""


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="not glibc")
def test_a_task_returns_its_memory() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    before, highest, after = map(int, done.stdout.split())
    assert highest - before > 150_000_000
    assert after - before < (highest - before) / 4
