"""Pinning: a pinned message, with the rest of its tool group, is never edited by a compaction."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F

from accounts.actors import SYSTEM, Actor
from sessions.models import AgentSession, Message, Pin
from sessions.store.flags import MessageFlag


@transaction.atomic
def message_pin(*, session: AgentSession, position: int, pinned: bool, actor: Actor = SYSTEM) -> bool:
    """Pin or unpin a message. Return False if the session has no message at this position.

    It affects later compactions; edits of an earlier one remain until that one is reverted. A message that is
    pinned again keeps its first pin. Raises `AgentSession.DoesNotExist` if the session was deleted.
    """
    # Locked first, as by other writers, so that they do not wait for each other.
    AgentSession.objects.select_for_update().get(pk=session.pk)
    rows = Message.objects.filter(session=session, position=position)
    bit = MessageFlag.PINNED.value
    flags = F("flags").bitor(bit) if pinned else F("flags").bitand(~bit)
    if not rows.update(flags=flags):
        return False
    AgentSession.objects.filter(pk=session.pk).update(plan_turn=None)
    if pinned:
        pin = Pin(session=session, position=position, user=actor.user, api_key_id=actor.api_key_id)
        Pin.objects.bulk_create([pin], ignore_conflicts=True)
    else:
        Pin.objects.filter(session=session, position=position).delete()
    return True
