"""`manage.py import_sessions PATH…`: agents' logs become sessions. Importing again adds nothing."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)

from accounts.models import Project
from sessions.importers.base import Damage, ImportedSession, Importer, LogFile
from sessions.importers.reading import LogSource, UnreadableLogError, discovered_folders, log_sources
from sessions.importers.registry import IMPORTERS, importer_named, recognise
from sessions.services.imports import ImportConflictError, session_import

from ._import_report import Report


class Command(BaseCommand):
    help = "Imports agents' session logs: files, folders, .gz and .zst. Importing again adds nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="a log, or a folder of logs")
        parser.add_argument(
            "--discover", action="store_true", help="also this user's Claude Code and Codex logs"
        )
        parser.add_argument("--project", default="default", help="slug of the project (default: default)")
        parser.add_argument(
            "--format",
            choices=[importer.name for importer in IMPORTERS],
            help="read everything as this format; otherwise each file tells its own",
        )
        parser.add_argument("--dry-run", action="store_true", help="read and count, store nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        paths = _paths(options["paths"], discover=options["discover"])
        run = _Run(
            project=None if options["dry_run"] else _project(options["project"]),
            importer=importer_named(options["format"]) if options["format"] else None,
        )
        started = time.monotonic()
        run.read_all(list(log_sources(paths)), quiet=options["verbosity"] == 0)
        self.stdout.write(run.report.text(time.monotonic() - started, dry_run=options["dry_run"]))
        if not run.report.recognised:
            raise CommandError("nothing here is a log of a known format")


class _Run:
    """One run of the command: reads the logs one at a time, so that memory holds the largest of them."""

    def __init__(self, *, project: Project | None, importer: Importer | None) -> None:
        self.report = Report()
        self._project = project
        self._importer = importer

    def read_all(self, sources: list[LogSource], *, quiet: bool) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        console = Console(stderr=True, quiet=quiet)
        with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
            task = progress.add_task("importing", total=sum(source.size for source in sources))
            for source in sources:
                self._read(source)
                progress.advance(task, source.size)

    def _read(self, source: LogSource) -> None:
        try:
            log = source.read()
        except UnreadableLogError as error:
            self.report.unreadable(str(error))
            return
        self.report.bytes += len(log.data)
        importer = self._importer or recognise(log)
        if importer is None:
            self.report.unknown(source.name)
            return
        self.report.file(importer.name, len(source.files))
        self._store(importer, log)

    def _store(self, importer: Importer, log: LogFile) -> None:
        for item in _parents_first(importer.read(log)):
            if isinstance(item, Damage):
                self.report.damage(item)
            elif self._project is None:
                self.report.counted(importer.name, item)
            else:
                try:
                    result = session_import(project=self._project, imported=item, origin=importer.name)
                except ImportConflictError as error:
                    self.report.conflict(str(error))
                else:
                    self.report.stored(importer.name, result)


def _parents_first(items: Iterable[ImportedSession | Damage]) -> list[ImportedSession | Damage]:
    return sorted(items, key=lambda item: isinstance(item, ImportedSession) and bool(item.parent_external_id))


def _paths(given: list[Path], *, discover: bool) -> list[Path]:
    paths = [*given, *(discovered_folders() if discover else [])]
    if not paths:
        raise CommandError("no path given" if not discover else "no Claude Code or Codex logs of this user")
    if missing := [str(path) for path in paths if not path.exists()]:
        raise CommandError(f"no such file or folder: {', '.join(missing)}")
    return paths


def _project(slug: str) -> Project:
    try:
        return Project.objects.get(slug=slug)
    except Project.DoesNotExist:
        raise CommandError(f"no project {slug!r}") from None
