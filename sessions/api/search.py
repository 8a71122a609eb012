"""`search/` and `sessions/{id}/search/`: ranked search over messages."""

from __future__ import annotations

from typing import Any
from zlib import crc32

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter

from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import InvalidField, InvalidRequest
from sessions.api.lookup import session_or_404
from sessions.api.paging import cursor_encode, cursor_param, invalid_cursor, limit_param, paging
from sessions.api.schema import operation
from sessions.api.serializers import contents as serializers
from sessions.models import AgentSession
from sessions.selectors.compactions.message_changes import MessageChange
from sessions.selectors.search.request import SearchExpression, search_expression
from sessions.selectors.search.results import MOST_HITS, SearchHit, search
from sessions.selectors.search.visibility import Visibility

_Q = (
    'Words to find; none is mandatory. `"…"` requires a phrase, `-word` excludes messages. Conditions: '
    "`role:`, `tool:`, `file:` and `error:yes` of messages"
)


class ProjectSearch(Endpoint):
    @operation(
        "search_project",
        "Search all sessions",
        serializers.ProjectSearchPage,
        parameters=[
            OpenApiParameter(
                "q",
                str,
                required=True,
                description=f"{_Q}; `agent:`, `model:`, `tag:`, `active:`, `cost:>1.50`, `peak:>50k`, "
                "`turns:>100`, `health:` and `compacted:` of sessions.",
            ),
            *paging(default=20, maximum=100),
        ],
    )
    def get(self, call: ApiCall) -> HttpResponse:
        """Searches the messages of all sessions of the project, including those removed from prompts, and
        returns the best matches first. Messages are found a few seconds after they are pushed. At most 200
        matches are returned over all pages."""
        return _search(call, session=None)


class SessionSearch(Endpoint):
    @operation(
        "search",
        "Search a session",
        serializers.SearchPage,
        parameters=[
            OpenApiParameter("q", {"type": "string", "minLength": 1}, required=True, description=f"{_Q}."),
            *paging(default=20, maximum=100),
        ],
    )
    def get(self, call: ApiCall, session_id: str) -> HttpResponse:
        """Searches the messages of the session, including those removed from the prompt, and returns the best
        matches first. At most 200 matches are returned over all pages."""
        return _search(call, session=session_or_404(call, session_id))


def _search(call: ApiCall, *, session: AgentSession | None) -> HttpResponse:
    text, limit = call.query.get("q", ""), limit_param(call, default=20, maximum=100)
    expression = _expression(text)
    request = expression.request(call.principal.project_id, session_id=session.pk if session else None)
    if request.is_empty:
        raise InvalidRequest("missing_field", "`q` must contain at least one word or condition.", param="q")
    query_id = crc32(f"{session.pk if session else ''} {text}".encode())
    offset = _offset(call, query_id)
    page = search(request, offset=offset, limit=limit)
    return json_response(
        {
            "data": [hit_json(hit, with_session=session is None) for hit in page.hits],
            "next_cursor": cursor_encode(offset + limit, query_id) if page.has_more else None,
        }
    )


def _expression(text: str) -> SearchExpression:
    expression = search_expression(text)
    if expression.problems:
        raise InvalidField("q", f"`q`: {expression.problems[0]}")
    return expression


def _offset(call: ApiCall, query_id: int) -> int:
    """Return the number of hits on the previous pages. A cursor is valid for its query only."""
    keys = cursor_param(call, int, int)
    if keys is None:
        return 0
    offset, cursor_query = keys
    if cursor_query != query_id or not 0 <= offset <= MOST_HITS:
        raise invalid_cursor()
    return int(offset)


def hit_json(hit: SearchHit, *, with_session: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "position": hit.position,
        "turn": hit.turn,
        "at": hit.at.isoformat(),
        "role": hit.role,
        "tool": hit.tool,
        "is_error": hit.is_error,
        "snippet": hit.snippet.text,
        "marks": [list(mark) for mark in hit.snippet.marks],
        "score": round(hit.score, 4),
        "in_prompt": hit.shown.visibility,
        "handle": hit.handle,
        "changes": [_change_json(change) for change in hit.shown.changes],
    }
    if not with_session:
        return found
    session = hit.session
    return {
        "session": {"id": str(session.pk), "external_id": session.external_id, "title": session.title},
        **found,
    }


def _change_json(change: MessageChange) -> dict[str, Any]:
    effect = Visibility.EVICTED if change.is_removal else Visibility.SHORTENED
    return {
        "effect": effect,
        "compaction": change.compaction,
        "turn": change.turn,
        "strategy": change.strategy,
        "reason": change.reason,
    }
