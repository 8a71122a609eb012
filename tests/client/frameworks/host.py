"""Run agents in forks of a process that has imported their framework, because the import takes seconds.

Usage: host.py MODULE…, the modules to import. Each line of the input is JSON: the path of a program and its
environment variables. Each line of the output is JSON: the exit status, the output and the errors.
"""

import importlib
import json
import os
import runpy
import signal
import sys
import tempfile
import threading

#: Maximum seconds for the run of an agent.
PATIENCE = 120

for module in sys.argv[1:]:
    importlib.import_module(module)
assert threading.active_count() == 1, "a fork would not have the other threads"

for line in sys.stdin:
    program, environment = json.loads(line)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            os.dup2(output.fileno(), sys.stdout.fileno())
            os.dup2(errors.fileno(), sys.stderr.fileno())
            os.environ.update(environment)
            signal.alarm(PATIENCE)
            runpy.run_path(program, run_name="__main__")
            sys.exit()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = [os.pread(each.fileno(), 1 << 20, 0).decode() for each in (output, errors)]
    print(json.dumps([status, *texts]), flush=True)
