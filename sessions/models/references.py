"""Scans of compacted sessions for references to content that compaction removed."""

from __future__ import annotations

from django.db import models

from sessions.models.claimable import Claimable
from sessions.models.session import AgentSession


class ReferenceScan(Claimable):
    """The scan of one session: its tracker (`compaction.referenced`) and the next message to scan.

    Derived: it can be rebuilt from the messages and edits. Scans run on a schedule, not in the push. The
    lease is also the pause before the next scan; it grows while a session receives no messages.
    """

    session = models.OneToOneField(
        AgentSession, on_delete=models.CASCADE, primary_key=True, related_name="reference_scan"
    )
    position = models.PositiveIntegerField(default=0)
    # The number of the newest compaction whose edits are tracked.
    compaction = models.PositiveIntegerField(default=0)
    # The number of reverted compactions at the last scan. If it changes, the scan starts over.
    reverted = models.PositiveIntegerField(default=0)
    state = models.BinaryField(null=True)
    pause_seconds = models.PositiveIntegerField(default=0)

    class Meta:
        # The scheduler takes the sessions that have waited longest.
        indexes = [models.Index(models.F("lease_until").asc(nulls_first=True), name="reference_scan_next")]

    def __str__(self) -> str:
        return f"reference scan of {self.session_id} at message {self.position}"
