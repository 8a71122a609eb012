"""`sessions/{id}/comments/`: the comments of members on turns."""

from __future__ import annotations

from django.http import HttpResponse

from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.lookup import session_or_404
from sessions.api.paging import limit_param, number_cursor, page_json, paging
from sessions.api.schema import operation
from sessions.api.serializers import comments as serializers
from sessions.models import Comment


class Comments(Endpoint):
    @operation(
        "comments_list", "List the comments on a session", serializers.CommentPage, parameters=paging()
    )
    def get(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Returns the comments that members wrote on turns in the dashboard, oldest first."""
        session = session_or_404(call, session_id)
        limit = limit_param(call)
        rows = session.comments.select_related("author").order_by("pk")
        if (after := number_cursor(call)) is not None:
            rows = rows.filter(pk__gt=after)
        return json_response(page_json(list(rows[: limit + 1]), limit, _comment_json, lambda row: [row.pk]))


def _comment_json(comment: Comment) -> dict[str, object]:
    return {
        "id": comment.pk,
        "turn": comment.turn,
        "author": comment.author_name if comment.author_username else None,
        "text": comment.text,
        "created_at": comment.created_at,
        "edited_at": comment.edited_at,
    }
