"""Pinning: a pinned message, with the rest of its tool group, is never edited by a compaction."""

from __future__ import annotations

from django.db.models import F

from sessions.models import AgentSession, Message
from sessions.store.flags import MessageFlag


def message_pin(*, session: AgentSession, position: int, pinned: bool) -> bool:
    """Pin or unpin a message. Return False if the session has no message at this position.

    It affects later compactions; edits of an earlier one remain until that one is reverted.
    """
    rows = Message.objects.filter(session=session, position=position)
    bit = MessageFlag.PINNED.value
    flags = F("flags").bitor(bit) if pinned else F("flags").bitand(~bit)
    return bool(rows.update(flags=flags))
