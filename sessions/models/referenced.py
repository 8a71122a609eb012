"""Sessions that were compacted, and how far it is known whether the model needed what was taken away."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from sessions.models.session import AgentSession


class ReferenceWatch(models.Model):
    """The look-out of one session (`compaction.referenced.Watch`), and the next message to look at.

    Derived: it can be made anew from the messages and the edits. Looked at by the beat, not by pushes: a
    session that gets no messages is looked at less and less often.
    """

    session = models.OneToOneField(
        AgentSession, on_delete=models.CASCADE, primary_key=True, related_name="reference_watch"
    )
    position = models.PositiveIntegerField(default=0)
    # The number of the newest compaction whose edits are watched.
    compaction = models.PositiveIntegerField(default=0)
    # Compactions that were reverted when it was last made: another number makes it anew.
    reverted = models.PositiveIntegerField(default=0)
    state = models.BinaryField(null=True)
    pause_seconds = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField(default=timezone.now)

    class Meta:
        # The beat takes what is due, longest first.
        indexes = [models.Index(fields=["due_at"], name="reference_due")]

    def __str__(self) -> str:
        return f"watch of {self.session_id} at message {self.position}"
