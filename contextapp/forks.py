"""Processes that end with the process that forked them, even if it is killed."""

from __future__ import annotations

import os
from threading import Thread


def end_forks_with_this_process() -> None:
    """Let each process that this one forks from now on end together with it.

    Each of them waits for the end of a pipe that only this process keeps open. Linux can send a signal
    instead (`end_with_parent`), which takes no thread.
    """
    reading, writing = os.pipe()
    inherited = [writing]

    def begin() -> None:
        if inherited:  # empty in a process that such a process forks
            os.close(inherited.pop())
            Thread(target=_end_after, args=(reading,), daemon=True).start()

    os.register_at_fork(after_in_child=begin)


def _end_after(pipe: int) -> None:
    os.read(pipe, 1)
    os._exit(1)
