"""Write, edit and delete comments on turns."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from accounts.actors import Actor
from redaction import redact
from sessions.models import AgentSession, Comment
from sessions.selectors.redaction import redaction_for
from sessions.services.sessions.audit import session_audit

#: Maximum characters of a comment, and number of comments on a session.
MAX_COMMENT, MOST_COMMENTS = 10_000, 2_000


class InvalidComment(ValueError):
    """The text is empty or too long, or the session has `MOST_COMMENTS` comments, as the message states."""


def comment_create(*, session: AgentSession, turn: int, text: str, author_id: int) -> Comment:
    """Store a comment on a turn, without secrets. Raises `InvalidComment`."""
    clean = _clean(session, text)
    if Comment.objects.filter(session=session).count() >= MOST_COMMENTS:
        raise InvalidComment(f"A session has at most {MOST_COMMENTS:,} comments.")
    return Comment.objects.create(session=session, turn=turn, text=clean, author_id=author_id)


def comment_edit(*, comment: Comment, text: str) -> None:
    """Replace the text of a comment. Raises `InvalidComment`."""
    clean = _clean(comment.session, text)
    if clean == comment.text:
        return
    Comment.objects.filter(pk=comment.pk).update(text=clean, edited_at=timezone.now())


@transaction.atomic
def comment_delete(*, comment: Comment, actor: Actor) -> None:
    """Delete a comment. The audit log records it if the comment is another user's."""
    comment.delete()
    if actor.user is not None and actor.user.pk == comment.author_id:
        return
    author = comment.author_name
    session_audit(comment.session, "comment.deleted", actor, author=author, turn=comment.turn)


def _clean(session: AgentSession, text: str) -> str:
    text = text.replace("\0", "").replace("\r\n", "\n").strip()
    if not text:
        raise InvalidComment("Enter a comment.")
    if len(text) > MAX_COMMENT:
        raise InvalidComment(f"A comment has at most {MAX_COMMENT:,} characters.")
    clean: str = redact(text, redaction=redaction_for(session.project_id))[0]
    return clean
