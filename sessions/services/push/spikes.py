"""Report spikes of tool output to webhooks and metrics."""

from __future__ import annotations

from django.dispatch import Signal

from sessions.models import AgentSession, WebhookEvent
from sessions.services.commits import after_commit
from sessions.services.push.values import NewTurn
from sessions.services.webhooks.deliveries import event_emit

#: Sent after the commit of a turn with a spike.
spike_stored = Signal()


def spike_report(turn: NewTurn) -> None:
    """Report the turn's spike, if it has one. Call it in the transaction that stores the turn."""
    if turn.spike is None:
        return
    session = AgentSession.objects.only("external_id", "project_id").get(pk=turn.session.id)
    payload = {
        "session": {"id": session.pk, "external_id": session.external_id},
        "turn": turn.index,
        "budget": turn.budget,
        "output_spike": turn.spike.to_json(),
    }
    event_emit(project_id=session.project_id, event=WebhookEvent.SPIKE, payload=payload)
    after_commit(spike_count, turn)


def spike_count(turn: NewTurn) -> None:
    """Count the stored turn's spike, if it has one, for the metrics."""
    if turn.spike is not None:
        spike_stored.send(sender=AgentSession)
