"""`sessions/{id}/blobs/{handle}/` and `sessions/{id}/search/`: what the prompt no longer shows."""

from __future__ import annotations

import shlex
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter

from redaction.patterns import BadPattern
from sessions.api import serializers
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import InvalidRequest, NotFound
from sessions.api.lookup import session_or_404
from sessions.api.paging import cursor_encode, limit_param, number_cursor, paging
from sessions.api.parameters import int_param
from sessions.api.schema import error_responses, operation
from sessions.models import AgentSession
from sessions.selectors import contents

_UNITS = {"lines": contents.slice_lines, "characters": contents.slice_characters}


class Blob(Endpoint):
    @operation(
        operation_id="blobs_get",
        summary="Bring back what was clipped, collapsed or offloaded",
        parameters=[
            OpenApiParameter("offset", int, description="first line (or character) of the piece, from 0"),
            OpenApiParameter("limit", int, description="lines (or characters) of the piece"),
            OpenApiParameter("unit", str, enum=list(_UNITS), description="else `lines`"),
            OpenApiParameter("grep", str, description="only lines that match this regular expression (RE2)"),
            OpenApiParameter("context", int, description="with grep: lines around each match, 0 to 20"),
        ],
        responses={200: serializers.Content, **error_responses(400)},
    )
    def get(self, call: ApiCall, session_id: str, handle: str) -> HttpResponse:
        session = session_or_404(call, session_id)
        content = contents.content_find(session=session, handle=handle)
        if content is None:
            raise NotFound("not_found", f"there is no content {handle!r} in this session", param="handle")
        return json_response(content_json(call, content))


def content_json(call: ApiCall, content: contents.Content) -> dict[str, Any]:
    offset = int_param(call, "offset", default=0)
    limit = int_param(call, "limit", default=1_000_000, least=1)
    unit = call.query.get("unit", "lines")
    if unit not in _UNITS:
        raise InvalidRequest("invalid_field", "`unit` must be `lines` or `characters`", param="unit")
    told: dict[str, Any] = {
        "handle": content.handle,
        "position": content.position,
        "turn": content.turn,
        "tool": content.tool,
        "rule": content.rule,
        "lines": len(content.text.splitlines()),
        "characters": len(content.text),
    }
    if pattern := call.query.get("grep"):
        around = int_param(call, "context", default=0, most=20)
        try:
            matches, count = contents.grep(content.text, pattern, context=around)
        except BadPattern as error:
            raise InvalidRequest(
                "invalid_field", f"`grep` is no regular expression: {error}", param="grep"
            ) from None
        return told | {"matches": matches, "match_count": count}
    text, after = _UNITS[unit](content.text, offset=offset, limit=limit)
    return told | {"unit": unit, "offset": offset, "text": text, "next_offset": after}


class Search(Endpoint):
    @operation(
        operation_id="search",
        summary="Search the whole transcript, also what the prompt no longer shows",
        parameters=[
            OpenApiParameter("q", str, required=True, description='words, all of them; "in quotes" a phrase'),
            *paging(default=20, most=100),
        ],
        responses={200: serializers.SearchPage, **error_responses(400)},
    )
    def get(self, call: ApiCall, session_id: str) -> HttpResponse:
        session = session_or_404(call, session_id)
        limit, before = limit_param(call, default=20, most=100), number_cursor(call)
        hits, more = search_json(session, call.query.get("q", ""), before=before, limit=limit)
        return json_response({"data": hits, "next_cursor": cursor_encode(more) if more is not None else None})


def search_json(
    session: AgentSession, query: str, *, before: int | None, limit: int
) -> tuple[list[dict[str, Any]], int | None]:
    terms = _terms(query)
    if not terms:
        raise InvalidRequest("missing_field", "`q` must name at least one word", param="q")
    hits, more = contents.search(session=session, terms=terms, before=before, limit=limit)
    return [
        {
            "position": hit.position,
            "turn": hit.turn,
            "role": hit.role,
            "tool": hit.tool,
            "snippet": hit.snippet,
        }
        for hit in hits
    ], more


def _terms(query: str) -> list[str]:
    lexer = shlex.shlex(query, posix=True)
    lexer.whitespace_split, lexer.quotes, lexer.escape, lexer.commenters = True, '"', "", ""
    try:
        return [term for term in lexer if term]
    except ValueError:  # a quote that is never closed is a character like any other
        return query.replace('"', " ").split()
