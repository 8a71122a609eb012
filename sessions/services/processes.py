"""Pools of processes that end with the process that started them, even if it is killed."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from threading import Thread
from typing import Any


def process_pool(
    count: int, begin: Callable[..., object] | None = None, *arguments: Any
) -> ProcessPoolExecutor:
    """Return a pool of `count` processes, each of which first calls `begin` with the arguments."""
    # A fork would copy this process's database connections and the state of its threads.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(begin, *arguments))


def _begin(begin: Callable[..., object] | None, *arguments: Any) -> None:
    # Each process also holds the writing end of the pipe from which it reads tasks, so it is never closed.
    Thread(target=_end_with_parent, daemon=True).start()
    if begin is not None:
        begin(*arguments)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
