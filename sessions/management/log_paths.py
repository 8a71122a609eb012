"""Command-line arguments for logs: paths, and the logs of this user's agents."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from importers.discovery import discovered_folders
from importers.reading import LOG_ENDINGS, LogSource, log_sources


def add_path_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="a log, or a folder of logs")
    parser.add_argument("--discover", action="store_true", help="add the logs of this user's coding agents")


def selected_logs(options: dict[str, Any]) -> list[LogSource]:
    """Return the logs to read. Raises CommandError if there are none, or a path does not exist."""
    discover = options["discover"]
    paths = [*options["paths"], *(discovered_folders() if discover else [])]
    if not paths:
        raise CommandError(
            "Found no logs of this user's coding agents. Specify the paths of logs."
            if discover
            else "Specify a log or a folder of logs, or use --discover."
        )
    if missing := [str(path) for path in paths if not path.exists()]:
        raise CommandError(f"No such file or folder: {', '.join(missing)}")
    logs = list(log_sources(paths))
    if not logs:
        raise CommandError(
            f"Found no logs in {', '.join(map(str, paths))}. In folders, only files named like logs are read:"
            f" {', '.join(LOG_ENDINGS)}. Specify other files by their path."
        )
    return logs
