"""The files in which each process counts its metrics. The web server adds up those of all processes."""

from __future__ import annotations

import os
from pathlib import Path

from django.conf import settings
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector


def metric_registry() -> CollectorRegistry:
    """Return a new registry, after creating the folder of the files that its metrics are written to."""
    Path(settings.CONTEXTAPP_METRICS_FOLDER).mkdir(parents=True, exist_ok=True)
    return CollectorRegistry()


def metric_files_reserve(**least: int) -> None:
    """Reserve the space of this process's files, and at least this many bytes of each kind (`counter=…`).

    They are memory-mapped: writing to an unreserved page ends the process if the disk is full. Raises
    `OSError` if it is full already.
    """
    folder = Path(settings.CONTEXTAPP_METRICS_FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    if not hasattr(os, "posix_fallocate"):  # on macOS
        return
    process = f"_{os.getpid()}.db"
    for kind in least:
        (folder / f"{kind}{process}").touch()
    for path in folder.glob(f"*{process}"):
        with path.open("ab") as file:
            size = max(path.stat().st_size, least.get(path.name.removesuffix(process), 0))
            os.posix_fallocate(file.fileno(), 0, size)


def exposition() -> bytes:
    """Return the metrics of all processes in the Prometheus text format."""
    registry = metric_registry()
    MultiProcessCollector(registry, path=settings.CONTEXTAPP_METRICS_FOLDER)  # type: ignore[no-untyped-call]
    text: bytes = generate_latest(registry)
    return text
