"""Run agents in forks of a process that has imported their framework, because the import takes seconds.

Usage: host.py MODULE…, the modules to import. Each line of the input is JSON: the path of a program and its
environment variables. Each line of the output is JSON: the exit status, the output and the errors.
"""

import gc
import importlib
import json
import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
import threading
from typing import BinaryIO

#: Maximum seconds for the run of an agent.
PATIENCE = 120


def run(program: str, environment: dict[str, str], output: BinaryIO, errors: BinaryIO) -> None:
    os.dup2(output.fileno(), sys.stdout.fileno())
    os.dup2(errors.fileno(), sys.stderr.fileno())
    os.environ.update(environment)
    signal.alarm(PATIENCE)
    runpy.run_path(program, run_name="__main__")


for module in sys.argv[1:]:
    importlib.import_module(module)
assert threading.active_count() == 1, "a fork would not have the other threads"
gc.freeze()  # a collection in a fork would copy the memory of the modules

for line in sys.stdin:
    program, environment = json.loads(line)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        # A process of multiprocessing ends without deleting all modules, which takes longer than most agents.
        child = multiprocessing.get_context("fork").Process(
            target=run, args=(program, environment, output, errors)
        )
        child.start()
        child.join()
        texts = [os.pread(each.fileno(), 1 << 20, 0).decode() for each in (output, errors)]
    print(json.dumps([child.exitcode, *texts]), flush=True)
os._exit(0)
