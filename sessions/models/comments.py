"""Comments of members on the turns of a session."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from sessions.models.session import AgentSession


class Comment(models.Model):
    """A comment on a turn: plain text with line breaks, with secrets redacted."""

    session = models.ForeignKey(
        AgentSession, on_delete=models.CASCADE, related_name="comments", db_index=False
    )
    turn = models.IntegerField()
    # NULL after the user's account was deleted, and for imported comments.
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    # The name of the author in the instance that the session was exported from; "" for other comments.
    imported_author = models.CharField(max_length=200, blank=True)
    text = models.TextField()
    created_at = models.DateTimeField(default=timezone.now)
    edited_at = models.DateTimeField(null=True)

    class Meta:
        # Selects the comments on a page of turns, in order.
        indexes = [models.Index(fields=["session", "turn", "id"], name="comment_turn")]

    def __str__(self) -> str:
        return f"comment on turn {self.turn} of {self.session_id}"

    @property
    def author_username(self) -> str | None:
        """The name of the author, here or in the instance that the comment was imported from."""
        return self.author.get_username() if self.author is not None else self.imported_author or None

    @property
    def author_name(self) -> str:
        """The name of the author for users, marked if it comes from another instance."""
        if self.author is None and self.imported_author:
            return f"{self.imported_author} (imported)"
        return self.author_username or "deleted user"
