"""Revert a compaction."""

from __future__ import annotations

from django.db import transaction

from accounts.actors import SYSTEM, Actor
from accounts.models import Project
from accounts.services import audit_record
from sessions.models import AgentSession, Compaction, WebhookEvent
from sessions.services.compactions.snapshots import snapshot_rebuild
from sessions.services.served_prompts import next_prompt_turn
from sessions.services.sessions.derived import derived_refresh_on_commit
from sessions.services.webhooks.deliveries import compaction_event_emit


class NotRevertible(Exception):
    """The compaction is not applied."""


@transaction.atomic
def compaction_revert(*, session: AgentSession, number: int, actor: Actor = SYSTEM) -> Compaction:
    """Undo the edits of one compaction; its record is kept. Raises `NotRevertible`."""
    locked = AgentSession.objects.select_for_update().get(pk=session.pk)
    compaction = Compaction.objects.filter(session=locked, number=number).first()
    if compaction is None or compaction.state != Compaction.State.DONE:
        raise NotRevertible(f"compaction {number} is not applied")
    compaction.state = Compaction.State.REVERTED
    compaction.reverted_turn = next_prompt_turn(locked)
    compaction.save(update_fields=["state", "reverted_turn"])
    compaction.refresh_from_db(fields=["reverted_turn"])
    snapshot_rebuild(session=locked)
    audit_record(
        action="compaction.reverted",
        project=Project.objects.get(pk=locked.project_id),
        actor=actor,
        target=locked.external_id,
        detail={"compaction": number},
    )
    compaction_event_emit(compaction=compaction, event=WebhookEvent.FINISHED)
    derived_refresh_on_commit(session=locked)
    return compaction
