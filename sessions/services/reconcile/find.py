"""Find the session of a client that does not name it, by the content of its request."""

from __future__ import annotations

from uuid import UUID

from compaction.histories import Change, has_calls, last_answer_end
from redaction import Redaction
from sessions.models import AgentSession, ClientHistory
from sessions.services.reconcile.matching import has_system_of, histories_of, history_match
from sessions.services.reconcile.new_turn import preamble_hash_of
from sessions.services.reconcile.points import root_of_points, roots_of_last_answer
from sessions.services.reconcile.reading import Reading, history_read
from sessions.services.reconcile.values import Sent

#: Maximum number of new messages with which a client is still recognized.
_MOST_NEW = 100


def root_of_caller(
    *, project_id: UUID, caller: bytes, body: bytes, redaction: Redaction
) -> AgentSession | None:
    """Return the session that the body continues, None if there is none.

    That is the one whose whole history the body begins with, or else the one with which it shares the longest
    history up to an answer, or else the one whose history it contains without the beginning. `caller` is the
    partition: histories of other callers are not found. Raises `BadJson` or `InvalidHistory`.
    """
    reading = history_read(body, redaction=redaction)
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
    if whole is not None:
        return whole.root
    return _root_of_trimmed(reading, project_id=project_id, caller=caller)


def _root_of_trimmed(reading: Reading, *, project_id: UUID, caller: bytes) -> AgentSession | None:
    """Return the session whose client has dropped or replaced the beginning of its history, or None.

    The request has the end of the whole last history, and the same system prompt and tools: another agent may
    get the last messages of a conversation, for example to check them. If other messages precede that end, it
    must have tool calls, whose ids no other conversation has: without them, it may be an example.
    """
    roots = roots_of_last_answer(reading, project_id=project_id, caller=caller)
    root = AgentSession.objects.filter(pk=roots.pop()).first() if len(roots) == 1 else None
    if root is None:
        return None
    matched = history_match(histories_of(root), reading, Sent())
    change, end = matched.comparison.change, last_answer_end(reading.values)
    is_trimmed = change in {Change.TRIMMED, Change.COMPACTED} or (
        change is Change.REWRITTEN and has_calls(reading.values[:end][-2:])
    )
    is_same = bytes(matched.history.preamble_hash) == (preamble_hash_of(reading) or b"")
    return root if is_trimmed and is_same and has_system_of(matched.session, reading) else None


def has_other_conversation(session: AgentSession, conversation: str) -> bool:
    """Return whether the session has a conversation other than this one, which the provider stores."""
    row = ClientHistory.objects.filter(pk=session.pk).values_list("conversation", flat=True).first()
    return bool(conversation) and row is not None and row != conversation


def is_of_another_caller(session: AgentSession, caller: bytes) -> bool:
    """Return whether the session belongs to another caller; one that was created over the API does not."""
    known = ClientHistory.objects.filter(pk=session.pk).values_list("caller", flat=True).first()
    return known is not None and bytes(known) != caller
