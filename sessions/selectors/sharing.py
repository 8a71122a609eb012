"""Links to read-only transcripts."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils import timezone

from accounts.keys import secret_hash
from sessions.models import AgentSession, SharedLink


def shared_link(token: str) -> SharedLink | None:
    """Return the link of a token with its session, or None if it is unknown, expired or no longer allowed."""
    links = SharedLink.objects.filter(
        token_hash=secret_hash(token), expires_at__gt=timezone.now(), session__project__allows_sharing=True
    )
    return links.select_related("session").first()


def links_active(session: AgentSession) -> Sequence[SharedLink]:
    """Return the session's links that have not expired, the newest first."""
    links = SharedLink.objects.filter(session=session, expires_at__gt=timezone.now())
    return list(links.select_related("created_by").order_by("-created_at"))
