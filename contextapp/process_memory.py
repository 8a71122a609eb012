"""The memory of a process: what it shares with those that it forks, and what it returns to the system."""

import ctypes
import gc

#: A function of glibc, which other C libraries do not have.
_malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)


def freeze_loaded() -> None:
    """Free what loading no longer needs, and exclude the rest from garbage collection.

    Requests take less time then, and garbage collection in forked processes does not copy the shared memory.
    """
    gc.collect()
    return_freed()
    gc.freeze()


def return_freed() -> None:
    """Return freed memory to the system. Otherwise, glibc keeps most of what many small objects took."""
    if _malloc_trim is not None:
        _malloc_trim(0)
