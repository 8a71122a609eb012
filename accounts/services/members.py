"""Add, change and remove members of a project. A project always keeps at least one owner."""

from __future__ import annotations

import secrets

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from accounts.actors import SYSTEM, Actor
from accounts.models import Membership, Project, Role
from accounts.services.audit import audit_record
from accounts.services.invitations import invitation_revoke


class MemberError(ValueError):
    """The change is not allowed. The message is shown to the user."""


@transaction.atomic
def member_add(*, project: Project, username: str, role: str, email: str) -> tuple[Membership, str | None]:
    """Return the membership, and the password if the user was created for it, which is shown only once.

    For the operator's command. Owners invite by link (`invitations`), because an existing account may belong
    to someone else. Raises `MemberError` if the user is already a member, or cannot be created with this name
    and address.
    """
    password = None
    user = User.objects.filter(username=username).first()
    if user is None:
        _require_valid(username, email)
        password = secrets.token_urlsafe(12)
        user = User.objects.create_user(username, email=email, password=password)
    membership, added = Membership.objects.get_or_create(project=project, user=user, defaults={"role": role})
    if not added:
        raise MemberError(f"{username} is already a member.")
    audit_record(
        action="member.added",
        project=project,
        actor=SYSTEM,
        target=username,
        detail={"role": membership.role},
    )
    return membership, password


@transaction.atomic
def member_role_set(*, membership: Membership, role: str, actor: Actor = SYSTEM) -> None:
    """Change the role of a member. The open invitations of a former owner are revoked.

    Raises `MemberError` for the last owner, or if the member was removed.
    """
    _lock(membership)
    if membership.role == role:
        return
    _require_owner(membership)
    detail = {"from": membership.role, "to": role}
    membership.role = role
    membership.save(update_fields=["role"])
    audit_record(
        action="member.changed",
        project=membership.project,
        actor=actor,
        target=membership.user.get_username(),
        detail=detail,
    )
    _revoke_invitations(membership, actor)


@transaction.atomic
def member_remove(*, membership: Membership, actor: Actor = SYSTEM) -> None:
    """Remove a member and the open invitations they created. The user and the keys they created remain.

    Raises `MemberError` for the last owner, or if the member was removed already.
    """
    _lock(membership)
    _require_owner(membership)
    audit_record(
        action="member.removed",
        project=membership.project,
        actor=actor,
        target=membership.user.get_username(),
        detail={"role": membership.role},
    )
    _revoke_invitations(membership, actor)
    membership.delete()


def _revoke_invitations(membership: Membership, actor: Actor) -> None:
    """Revoke the open invitations of a former owner, who knows their links and could return with one."""
    created = membership.project.invitations.filter(created_by=membership.user)
    for invitation in created.filter(expires_at__gt=timezone.now()):
        invitation_revoke(invitation=invitation, actor=actor)


def _require_valid(username: str, email: str) -> None:
    try:
        User(username=username, email=email).clean_fields(exclude=["password"])
    except ValidationError as error:
        reasons = (f"{field}: {' '.join(messages)}" for field, messages in error.message_dict.items())
        raise MemberError(f"The user cannot be created. {' '.join(reasons)}") from None


def _lock(membership: Membership) -> None:
    """Lock the members of the project, and read the current role of this one."""
    Project.objects.select_for_update(no_key=True).get(pk=membership.project_id)
    try:
        membership.refresh_from_db(fields=["role"])
    except Membership.DoesNotExist:
        raise MemberError(f"{membership.user.get_username()} is no longer a member.") from None


def _require_owner(leaving: Membership) -> None:
    owners = Membership.objects.filter(project=leaving.project_id, role=Role.OWNER)
    if leaving.role == Role.OWNER and not owners.exclude(pk=leaving.pk).exists():
        raise MemberError("A project must have at least one owner.")
