"""`manage.py members list|add|role|remove`: who belongs to a project, without a browser."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Membership, Project, Role
from accounts.services.members import MemberError, member_add, member_remove, member_role_set


class Command(BaseCommand):
    help = "Lists, adds, changes and removes the members of a project."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", default="default", help="slug of the project (default: default)")
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("list")
        add = actions.add_parser("add", help="a user who is not there yet is made")
        add.add_argument("username")
        add.add_argument("--role", choices=Role.values, default=Role.MEMBER)
        add.add_argument("--email", default="")
        role = actions.add_parser("role")
        role.add_argument("username")
        role.add_argument("role", choices=Role.values)
        actions.add_parser("remove").add_argument("username")

    def handle(self, *, action: str, project: str, **options: Any) -> None:
        found = Project.objects.filter(slug=project).first()
        if found is None:
            raise CommandError(f"There is no project {project!r}.")
        try:
            getattr(self, f"_{action}")(found, options)
        except MemberError as error:
            raise CommandError(str(error)) from None

    def _list(self, project: Project, options: dict[str, Any]) -> None:
        for row in project.memberships.select_related("user").order_by("user__username"):
            self.stdout.write(f"{row.role:8}  {row.user.get_username()}")

    def _add(self, project: Project, options: dict[str, Any]) -> None:
        _, password = member_add(
            project=project,
            username=options["username"],
            role=options["role"],
            email=options["email"],
        )
        if password is not None:
            self.stdout.write(f"The user is new. Password, shown this once: {password}")

    def _role(self, project: Project, options: dict[str, Any]) -> None:
        member_role_set(membership=_found(project, options["username"]), role=options["role"])

    def _remove(self, project: Project, options: dict[str, Any]) -> None:
        member_remove(membership=_found(project, options["username"]))


def _found(project: Project, username: str) -> Membership:
    row = project.memberships.select_related("user", "project").filter(user__username=username).first()
    if row is None:
        raise CommandError(f"{username} is no member of {project.slug}.")
    return row
