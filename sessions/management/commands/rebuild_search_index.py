"""Rebuild the search index, for example after an update changed how text is analyzed."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import Project
from sessions.models import AgentSession
from sessions.services.search.indexing import search_index_rebuild


class Command(BaseCommand):
    help = "Rebuild the search index of one project or all, session by session."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--project", help="slug of the project (default: all projects)")

    def handle(self, *args: Any, **options: Any) -> None:
        sessions = AgentSession.objects.order_by("-last_active_at")
        if slug := options["project"]:
            project = Project.objects.filter(slug=slug).first()
            if project is None:
                raise CommandError(f"Project {slug!r} does not exist.")
            sessions = sessions.filter(project=project)
        ids = list(sessions.values_list("pk", flat=True))
        messages = sum(search_index_rebuild(session_id=id) for id in ids)
        self.stdout.write(f"Indexed {messages:,} messages of {len(ids):,} sessions.")
