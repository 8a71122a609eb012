"""`manage.py import_sessions PATH…`: import agents' logs. Importing a log again adds nothing."""

from __future__ import annotations

import os
import secrets
import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from accounts.models import Project
from importers.reading import LogSource
from importers.registry import IMPORTERS
from redaction import Redaction
from sessions.management.import_report import Report
from sessions.management.log_paths import add_path_arguments, selected_logs
from sessions.selectors.redaction import redaction_of
from sessions.services.imports.find import ImportConflictError
from sessions.services.imports.logs import known_logs, log_import
from sessions.services.imports.reader import Reader, ReadLog, read_logs

#: One process stores what the others read, and one processor is left for it and the database. Additional
#: readers would only wait.
_MOST_JOBS = 4


class Command(BaseCommand):
    help = "Import agents' session logs (files, folders, .gz, .zst). Repeating an import adds nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_path_arguments(parser)
        parser.add_argument("--project", default="default", help="slug of the project (default: default)")
        parser.add_argument(
            "--format",
            choices=list(IMPORTERS),
            help="read all files in this format instead of detecting it",
        )
        parser.add_argument("--dry-run", action="store_true", help="read and count, store nothing")
        parser.add_argument(
            "--jobs",
            type=int,
            default=max(1, min(_MOST_JOBS, (os.cpu_count() or 1) - 1)),
            help="maximum number of processes that read logs (default: %(default)s)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        logs = selected_logs(options)
        run = _Run(
            project=None if options["dry_run"] else _project(options["project"]), format=options["format"]
        )
        started = time.monotonic()
        run.read_all(logs, jobs=options["jobs"], quiet=options["verbosity"] == 0)
        self.stdout.write(run.report.text(time.monotonic() - started, dry_run=options["dry_run"]))
        if not run.report.recognized:
            raise CommandError("No log is in a supported format.")
        if not options["dry_run"]:
            path = reverse("sessions", args=[options["project"]])
            self.stdout.write(
                f"Sessions: {settings.CONTEXTAPP_PUBLIC_URL or settings.CONTEXTAPP_LOCAL_URL}{path}"
            )


class _Run:
    """One run of the command: other processes read logs ahead, and this one stores them."""

    def __init__(self, *, project: Project | None, format: str | None) -> None:
        self.report = Report()
        self._project = project
        self._known = known_logs(project) if project else {}
        # In a dry run nothing is stored, so the placeholders need not match those of a project.
        redaction = redaction_of(project) if project else Redaction(key=secrets.token_bytes(32))
        self._reader = Reader(redaction=redaction, known=frozenset(self._known), format=format)

    def read_all(self, sources: list[LogSource], *, jobs: int, quiet: bool) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TextColumn("eta"),
            TimeRemainingColumn(),
        )
        console = Console(stderr=True, quiet=quiet)
        with Progress(*columns, console=console) as progress:
            task = progress.add_task("importing", total=sum(source.size for source in sources))
            logs = read_logs(sources, self._reader, jobs=jobs)
            for source, log in zip(sources, logs, strict=True):
                self._take(log)
                progress.advance(task, source.size)

    def _take(self, log: ReadLog) -> None:
        """Store and report a log."""
        self.report.bytes += log.size
        if log.error:
            self.report.add_unreadable(log.error)
        elif log.known:
            self.report.count_skipped(self._known[log.digest], log.files)
        elif log.unrecognized:
            self.report.add_unknown(log.name, log.unrecognized)
        else:
            self.report.count_files(log.importer, log.files)
            self._store(log)

    def _store(self, log: ReadLog) -> None:
        for damage in log.damages:
            self.report.add_damage(damage)
        if self._project is None:
            for session in log.sessions:
                self.report.count_read(log.importer, session)
            return
        for result in log_import(project=self._project, log=log):
            if isinstance(result, ImportConflictError):
                self.report.add_conflict(log.name, str(result))
            else:
                self.report.count_imported(log.importer, result)


def _project(slug: str) -> Project:
    try:
        return Project.objects.get(slug=slug)
    except Project.DoesNotExist:
        raise CommandError(f"Project {slug!r} does not exist.") from None
