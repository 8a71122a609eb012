"""Find the session of a client that does not name it, by the content of its request."""

from __future__ import annotations

from uuid import UUID

from redaction import Redaction
from sessions.models import AgentSession, ClientHistory
from sessions.services.reconcile.points import root_of_points
from sessions.services.reconcile.reading import history_read

#: Maximum number of new messages with which a client is still recognized.
_MOST_NEW = 100


def root_of_caller(
    *, project_id: UUID, caller: bytes, body: bytes, redaction: Redaction
) -> AgentSession | None:
    """Return the session that the body continues, None if there is none.

    That is the one whose whole history the body begins with, or else the one with which it shares the longest
    history up to an answer. `caller` is the partition: histories of other callers are not found. Raises
    `BadJson` or `InvalidHistory`.
    """
    reading = history_read(body, histories=(), redaction=redaction)
    digests = reading.digests[1:][-_MOST_NEW:]
    rows = ClientHistory.objects.filter(
        caller=caller, digest__in=digests, count__gt=0, session__project_id=project_id
    )
    whole = rows.select_related("root").order_by("-count", "-updated_at").first()
    longer = root_of_points(
        reading, project_id=project_id, caller=caller, after=whole.count if whole is not None else 0
    )
    if longer is not None:
        return AgentSession.objects.filter(pk=longer).first()
    return whole.root if whole is not None else None


def has_other_conversation(session: AgentSession, conversation: str) -> bool:
    """Return whether the session has another conversation than this one, which the provider stores."""
    row = ClientHistory.objects.filter(pk=session.pk).values_list("conversation", flat=True).first()
    return bool(conversation) and row is not None and row != conversation


def is_of_another_caller(session: AgentSession, caller: bytes) -> bool:
    """Return whether the session belongs to another caller; one that was created over the API does not."""
    known = ClientHistory.objects.filter(pk=session.pk).values_list("caller", flat=True).first()
    return known is not None and bytes(known) != caller
