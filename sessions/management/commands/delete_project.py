"""`manage.py delete_project SLUG --yes`: delete a project with everything that belongs to it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import Project
from sessions.services.projects import project_delete
from sessions.store.blobs import StorageUnavailable


class Command(BaseCommand):
    help = "Delete a project: its sessions, search index, API keys, settings and audit log."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="slug of the project")
        parser.add_argument("--yes", action="store_true", help="without it, only show the number of sessions")

    def handle(self, *, slug: str, yes: bool, **options: Any) -> None:
        project = Project.objects.filter(slug=slug).first()
        if project is None:
            raise CommandError(f"Project {slug!r} does not exist.")
        sessions = project.agent_sessions.count()
        if not yes:
            raise CommandError(
                f"Project {slug!r} has {sessions:,} sessions. Add --yes to delete it and everything in it."
            )
        try:
            project_delete(project=project)
        except StorageUnavailable as error:
            raise CommandError(
                f"Object storage failed: {error}. The sessions are deleted. Repeat the command later to "
                "delete the project."
            ) from error
        self.stdout.write(f"Deleted the project {slug!r} with {sessions:,} sessions.")
