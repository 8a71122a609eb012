"""Create and revoke links to read-only transcripts."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from accounts.actors import SYSTEM, Actor
from accounts.keys import secret_hash
from accounts.models import Project
from sessions.models import AgentSession, SharedLink
from sessions.services.sessions.audit import session_audit

#: Maximum number of links to a session.
MOST_LINKS = 20


class SharingDisabled(Exception):
    """The project does not allow links."""


class TooManyLinks(Exception):
    """The session has `MOST_LINKS` links already."""


@transaction.atomic
def link_create(
    *, session: AgentSession, days: int, comments: bool = False, actor: Actor = SYSTEM
) -> tuple[SharedLink, str]:
    """Create a link that expires after some days, and return it with its token, which is not stored.

    If `comments` is set, the link also shows the comments on turns.

    Raises `SharingDisabled` and `TooManyLinks`.
    """
    # `no_key`: otherwise, this and another change of the session could wait for each other.
    project = Project.objects.select_for_update(no_key=True).get(pk=session.project_id)
    if not project.allows_sharing:
        raise SharingDisabled
    now = timezone.now()
    SharedLink.objects.filter(session=session, expires_at__lte=now).delete()
    if SharedLink.objects.filter(session=session).count() >= MOST_LINKS:
        raise TooManyLinks
    token = secrets.token_urlsafe(32)
    link = SharedLink.objects.create(
        session=session,
        token_hash=secret_hash(token),
        created_by=actor.user,
        expires_at=now + timedelta(days=days),
        shows_comments=comments,
    )
    expires = link.expires_at.isoformat()
    session_audit(session, "session.shared", actor, session=str(session.pk), expires_at=expires)
    return link, token


@transaction.atomic
def link_revoke(*, link: SharedLink, actor: Actor) -> None:
    """Delete a link. It stops working at once."""
    session_audit(link.session, "session.unshared", actor)
    link.delete()
