"""Invitations to a project: a link that works once, for an existing or a new account."""

from __future__ import annotations

import logging
import secrets
from datetime import timedelta
from smtplib import SMTPException

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import send_mail
from django.db import IntegrityError, models, transaction
from django.utils import timezone

from accounts.actors import Actor
from accounts.keys import secret_hash
from accounts.models import Invitation, Membership, Project
from accounts.services.audit import audit_record

logger = logging.getLogger(__name__)

#: How long an invitation is valid.
LIFETIME = timedelta(days=7)


class InvitationError(ValueError):
    """The invitation cannot be accepted. The message is shown to the user."""


@transaction.atomic
def invitation_create(
    *, project: Project, role: str, email: str = "", actor: Actor
) -> tuple[Invitation, str]:
    """Return the invitation and its token, which is shown only once. Deletes expired invitations."""
    project.invitations.filter(expires_at__lte=timezone.now()).delete()
    token = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        project=project,
        role=role,
        email=email,
        hash=secret_hash(token),
        created_by=actor.user,
        expires_at=timezone.now() + LIFETIME,
    )
    detail = {"role": role, "email": email} if email else {"role": role}
    audit_record(action="invitation.created", project=project, actor=actor, detail=detail)
    return invitation, token


def invitation_send(invitation: Invitation, *, url: str) -> bool:
    """Send the link by email. Returns False if the server has no mail server or it rejects the message."""
    if not settings.EMAIL_HOST or not invitation.email:
        return False
    subject = " ".join(f"Invitation to {invitation.project.name}".split())
    text = (
        f"You have been invited to join the contextapp project {invitation.project.name} "
        f"with the role {invitation.role}.\n\n"
        f"{url}\n\nThe link works once, until {invitation.expires_at:%Y-%m-%d %H:%M} UTC."
    )
    try:
        return bool(send_mail(subject, text, settings.DEFAULT_FROM_EMAIL, [invitation.email]))
    except (SMTPException, OSError):
        logger.warning("The invitation %s could not be sent.", invitation.pk, exc_info=True)
        return False


@transaction.atomic
def invitation_revoke(*, invitation: Invitation, actor: Actor) -> None:
    audit_record(
        action="invitation.revoked",
        project=invitation.project,
        actor=actor,
        detail={"role": invitation.role} | ({"email": invitation.email} if invitation.email else {}),
    )
    invitation.delete()


def invitation_find(token: str) -> Invitation | None:
    """Return the invitation with this token, or None if it was used or revoked, or has expired."""
    return _open(token).select_related("project").first()


@transaction.atomic
def invitation_accept(*, token: str, user: User) -> Membership:
    """Make the user a member and delete the invitation.

    Raises `InvitationError` if it is not open, or the user is already a member.
    """
    invitation = _open(token).select_for_update().first()
    if invitation is None:
        raise InvitationError("This invitation was used or revoked, or has expired.")
    membership, added = Membership.objects.get_or_create(
        project=invitation.project, user=user, defaults={"role": invitation.role}
    )
    if not added:
        raise InvitationError("You are already a member of this project.")
    audit_record(
        action="member.added",
        project=invitation.project,
        actor=Actor(user=user),
        target=user.get_username(),
        detail={"role": membership.role, "invitation": str(invitation.pk)},
    )
    invitation.delete()
    return membership


@transaction.atomic
def invitation_accept_as_new(*, token: str, username: str, password: str) -> Membership:
    """Create an account and make it a member.

    Raises `InvitationError` if the invitation is not open, or another request has just used the username.
    """
    invitation = invitation_find(token)
    email = invitation.email if invitation else ""
    try:
        with transaction.atomic():
            user = User.objects.create_user(username, email=email, password=password)
    except IntegrityError:
        raise InvitationError("A user with that username already exists.") from None
    return invitation_accept(token=token, user=user)


def _open(token: str) -> models.QuerySet[Invitation]:
    return Invitation.objects.filter(hash=secret_hash(token), expires_at__gt=timezone.now())
