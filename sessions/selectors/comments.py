"""The comments on the turns of a session."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from django.db.models import Count

from sessions.models import AgentSession, Comment


def session_comments(*, session: AgentSession) -> list[Comment]:
    """Return all comments on a session by turn, oldest first. One query."""
    return list(session.comments.select_related("author").order_by("turn", "id"))


def comments_on(*, session: AgentSession, turns: Collection[int]) -> Mapping[int, Sequence[Comment]]:
    """Return the comments on these turns by turn, oldest first. One query."""
    by_turn: defaultdict[int, list[Comment]] = defaultdict(list)
    rows = session.comments.filter(turn__in=turns).select_related("author").order_by("id")
    for comment in rows:
        by_turn[comment.turn].append(comment)
    return by_turn


def comment_counts(ids: Sequence[UUID]) -> Mapping[UUID, int]:
    """Return the number of comments by session, without sessions that have none. One query."""
    rows = Comment.objects.filter(session_id__in=ids).values_list("session_id")
    return dict(rows.annotate(count=Count("id")))


class CommentQueue:
    """The comments on a session in the order of turns, consumed while its transcript is exported."""

    def __init__(self, comments: Sequence[Comment]) -> None:
        self._left = deque(comments)

    def until(self, turn: int) -> list[Comment]:
        """Take the comments on turns up to `turn`, including those on turns without messages."""
        taken = []
        while self._left and self._left[0].turn <= turn:
            taken.append(self._left.popleft())
        return taken

    def rest(self) -> list[Comment]:
        """Take the comments on turns after the last message."""
        return self.until(2**31)
