"""Find the session of a client that does not name it, by the content of its request."""

from __future__ import annotations

from uuid import UUID

from redaction import Redaction
from sessions.models import AgentSession, ClientHistory
from sessions.services.reconcile.reading import history_read

#: Maximum number of new messages with which a client is still recognized.
_MOST_NEW = 100


def root_of_caller(
    *, project_id: UUID, caller: bytes, body: bytes, redaction: Redaction
) -> AgentSession | None:
    """Return the session whose whole history the body begins with, None if there is none.

    `caller` is the partition: histories of other callers are not found. Raises `BadJson` or `InvalidHistory`.
    """
    reading = history_read(body, histories=(), redaction=redaction)
    digests = reading.digests[1:][-_MOST_NEW:]
    rows = ClientHistory.objects.filter(caller=caller, digest__in=digests, session__project_id=project_id)
    for row in rows.select_related("root").order_by("-count", "-updated_at"):
        if row.count and bytes(row.digest) in digests:
            return row.root
    return None


def has_other_conversation(session: AgentSession, conversation: str) -> bool:
    """Return whether the session has another conversation than this one, which the provider stores."""
    row = ClientHistory.objects.filter(pk=session.pk).values_list("conversation", flat=True).first()
    return bool(conversation) and row is not None and row != conversation


def is_of_another_caller(session: AgentSession, caller: bytes) -> bool:
    """Return whether the session belongs to another caller; one that was created over the API does not."""
    known = ClientHistory.objects.filter(pk=session.pk).values_list("caller", flat=True).first()
    return known is not None and bytes(known) != caller
