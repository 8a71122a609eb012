"""`manage.py keys list|create|revoke`: manage API keys without a browser."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from accounts.models import ApiKey, Project, Scope
from accounts.services.api_keys import api_key_create, api_key_revoke


class Command(BaseCommand):
    help = "List, create and revoke the API keys of a project."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", default="default", help="slug of the project (default: default)")
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("list", help="list the keys that are not revoked")
        create = actions.add_parser("create", help="create a key and print it; it cannot be shown again")
        create.add_argument("name", type=_name)
        create.add_argument("--scopes", nargs="+", choices=Scope.values, default=[Scope.PUSH, Scope.READ])
        create.add_argument(
            "--days", type=_number(36_500), help="days until the key expires (default: never)"
        )
        create.add_argument("--rate-limit", type=_number(1_000_000), help="requests per minute")
        revoke = actions.add_parser("revoke", help="revoke a key")
        revoke.add_argument("prefix", help="the eight characters after ctx_")

    def handle(self, *, action: str, project: str, **options: Any) -> None:
        found = Project.objects.filter(slug=project).first()
        if found is None:
            raise CommandError(f"Project {project!r} does not exist.")
        getattr(self, f"_{action}")(found, options)

    def _list(self, project: Project, options: dict[str, Any]) -> None:
        for key in ApiKey.objects.filter(project=project, revoked_at=None).order_by("created_at"):
            expires = f"expires {key.expires_at:%Y-%m-%d}" if key.expires_at else "does not expire"
            self.stdout.write(f"{key.prefix}  {','.join(key.scopes):16}  {expires}  {key.name}")

    def _create(self, project: Project, options: dict[str, Any]) -> None:
        days = options["days"]
        _, text = api_key_create(
            project=project,
            name=options["name"],
            scopes=options["scopes"],
            expires_at=timezone.now() + timedelta(days=days) if days is not None else None,
            rate_limit=options["rate_limit"],
        )
        self.stdout.write(text)

    def _revoke(self, project: Project, options: dict[str, Any]) -> None:
        key = ApiKey.objects.filter(project=project, prefix=options["prefix"]).first()
        if key is None:
            raise CommandError(f"Project {project.slug!r} has no key with the prefix {options['prefix']!r}.")
        api_key_revoke(key=key)
        self.stdout.write(f"Revoked {key.prefix}.")


def _name(text: str) -> str:
    if not 0 < len(text.strip()) <= 200:
        raise ArgumentTypeError("must have 1 to 200 characters")
    return text.strip()


def _number(most: int) -> Callable[[str], int]:
    """Return a parser of numbers from 1 to `most`."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and 0 < int(text) <= most):
            raise ArgumentTypeError(f"must be a number from 1 to {most:,}")
        return int(text)

    return parse
