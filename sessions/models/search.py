"""The search index. Derived from the messages; see the package `search` for its contents."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from accounts.models import Project
from sessions.models.claimable import Claimable
from sessions.models.session import AgentSession


class SearchState(Claimable):
    """The indexing progress of a session: `position` is that of the next message."""

    session = models.OneToOneField(
        AgentSession, on_delete=models.CASCADE, primary_key=True, related_name="search_state"
    )
    position = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"search index of {self.session_id} up to message {self.position}"


class SearchSegment(models.Model):
    """The index of the messages of one session from `first` up to, not including, `end`.

    `keys` are the keys of its terms, with which a query finds it. `files` are the files that tools touched.
    The migration moves wide columns out of the rows, because a query visits the rows of all segments that
    contain one of its terms, and reads the wide columns of the best only.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="search_segments", db_index=False
    )
    first = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    # The time of the last message.
    ended_at = models.DateTimeField()
    header = models.BinaryField()
    keys = ArrayField(models.IntegerField())
    files = ArrayField(models.TextField(), default=list)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "first"], name="search_segment_first")]
        indexes = [
            models.Index(fields=["project", "-ended_at"], name="search_segment_newest"),
            # Thousands of keys at a time are added in a third less time through a pending list. Every query
            # scans the list, which takes a quarter of a millisecond at this size (kB).
            GinIndex(
                fields=["keys"], name="search_segment_keys", fastupdate=True, gin_pending_list_limit=1_024
            ),
        ]

    def __str__(self) -> str:
        return f"search index of messages {self.first} to {self.end} of {self.session_id}"


class SearchBlock(models.Model):
    """The terms of a segment from `first_term` on, with their postings (`search.segments`)."""

    pk = models.CompositePrimaryKey("segment_id", "first_term")
    segment = models.ForeignKey(
        SearchSegment, on_delete=models.CASCADE, related_name="blocks", db_index=False
    )
    # Bytes, because they sort the same under every collation.
    first_term = models.BinaryField()
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"terms of search segment {self.segment_id}"
