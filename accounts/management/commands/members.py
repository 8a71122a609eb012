"""`manage.py members list|add|role|remove`: manage the members of a project without a browser."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Membership, Project, Role
from accounts.services.members import MemberError, member_add, member_remove, member_role_set


class Command(BaseCommand):
    help = "List, add, change and remove the members of a project."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", default="default", help="slug of the project (default: default)")
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("list", help="list the members and their roles")
        add = actions.add_parser("add", help="add a member, and create the user if necessary")
        add.add_argument("username")
        add.add_argument("--role", choices=Role.values, default=Role.MEMBER)
        add.add_argument("--email", default="")
        role = actions.add_parser("role", help="change the role of a member")
        role.add_argument("username")
        role.add_argument("role", choices=Role.values)
        remove = actions.add_parser("remove", help="remove a member; the user account stays")
        remove.add_argument("username")

    def handle(self, *, action: str, project: str, **options: Any) -> None:
        found = Project.objects.filter(slug=project).first()
        if found is None:
            raise CommandError(f"Project {project!r} does not exist.")
        try:
            getattr(self, f"_{action}")(found, options)
        except MemberError as error:
            raise CommandError(str(error)) from None

    def _list(self, project: Project, options: dict[str, Any]) -> None:
        for row in project.memberships.select_related("user").order_by("user__username"):
            self.stdout.write(f"{row.role:8}  {row.user.get_username()}")

    def _add(self, project: Project, options: dict[str, Any]) -> None:
        member, password = member_add(
            project=project,
            username=options["username"],
            role=options["role"],
            email=options["email"],
        )
        self.stdout.write(f"Added {member.user.get_username()} to {project.slug} as {member.role}.")
        if password is not None:
            self.stdout.write(f"Created the user. Password (it cannot be shown again): {password}")

    def _role(self, project: Project, options: dict[str, Any]) -> None:
        member_role_set(membership=_membership(project, options["username"]), role=options["role"])
        self.stdout.write(
            f"Changed the role of {options['username']} in {project.slug} to {options['role']}."
        )

    def _remove(self, project: Project, options: dict[str, Any]) -> None:
        member_remove(membership=_membership(project, options["username"]))
        self.stdout.write(f"Removed {options['username']} from {project.slug}.")


def _membership(project: Project, username: str) -> Membership:
    row = project.memberships.select_related("user", "project").filter(user__username=username).first()
    if row is None:
        raise CommandError(f"{username} is not a member of {project.slug}.")
    return row
