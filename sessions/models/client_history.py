"""Complete message histories sent by clients, and which part of them is stored."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from sessions.models.session import AgentSession


class ClientHistory(models.Model):
    """The part of a client's last history that contextapp stores.

    A client names one session, the `root`. If it continues an earlier point of its history, that becomes a
    forked session, which is found by its digest. The columns that begin with `prefix` describe the beginning
    of the request's `messages` in bytes: a request that begins with the same bytes is parsed from there on.
    """

    session = models.OneToOneField(
        AgentSession, on_delete=models.CASCADE, primary_key=True, related_name="client_history"
    )
    root = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="+", db_index=False)
    # [[first, end]]: positions of the client's messages. The last end is NULL: all messages after.
    spans = models.JSONField(default=list)
    count = models.PositiveIntegerField(default=0)
    digest = models.BinaryField(max_length=8)
    prefix_count = models.PositiveIntegerField(default=0)
    prefix_bytes = models.PositiveIntegerField(default=0)
    prefix_hash = models.BinaryField(max_length=16, default=b"")
    prefix_digest = models.BinaryField(max_length=8, default=b"")
    # Hash of the system prompt and tools that the client last sent.
    preamble_hash = models.BinaryField(max_length=16, default=b"")
    # The caller that sessions without an id belong to: hash of API key and provider. NULL if the client names
    # its session.
    caller = models.BinaryField(max_length=16, null=True)
    # The conversation that the provider stores. Another one of the same client becomes a separate session.
    conversation = models.CharField(max_length=150, blank=True)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            # The forks of a session, the most recent first.
            models.Index(fields=["root", "-updated_at"], name="client_history_root"),
            # A session is found by what its client sends if it does not name it.
            models.Index(
                fields=["caller", "digest"],
                condition=models.Q(caller__isnull=False),
                name="client_history_caller",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.count} messages of the client of {self.session_id}"


class HistoryPoint(models.Model):
    """A history up to an answer, with which later requests of a client that names no session may begin.

    `digest` does not include the last `omitted` messages before the answer.
    """

    history = models.ForeignKey(ClientHistory, on_delete=models.CASCADE, related_name="+")
    digest = models.BinaryField(max_length=8)
    omitted = models.PositiveSmallIntegerField()
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["digest", "-at"], name="history_point_digest")]

    def __str__(self) -> str:
        return f"{self.digest.hex()} of {self.history_id}"
