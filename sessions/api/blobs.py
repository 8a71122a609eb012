"""`sessions/{id}/blobs/{handle}/`: content removed from the prompt."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter

from redaction.patterns import BadPattern
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import InvalidField, NotFound
from sessions.api.lookup import session_or_404
from sessions.api.parameters import int_param, int_parameter
from sessions.api.schema import operation
from sessions.api.serializers import contents as serializers
from sessions.selectors.compactions import contents
from sessions.store.blobs import ContentLost

_UNITS = {"lines": contents.slice_lines, "characters": contents.slice_characters}


class Blob(Endpoint):
    @operation(
        "blobs_get",
        "Retrieve removed content by its handle",
        serializers.Content,
        parameters=[
            int_parameter("offset", "Index of the first line (or character) to return. Defaults to 0."),
            int_parameter("limit", "Number of lines (or characters) to return. Defaults to all.", minimum=1),
            OpenApiParameter(
                "unit",
                str,
                enum=list(_UNITS),
                description="Unit of `offset` and `limit`. Defaults to `lines`.",
            ),
            OpenApiParameter(
                "grep", str, description="Return only lines that match this regular expression (RE2 syntax)."
            ),
            int_parameter("context", "With `grep`: lines of context around each match, 0 to 20.", maximum=20),
        ],
    )
    def get(self, call: ApiCall, session_id: str, handle: str) -> HttpResponse:
        """Returns the original of content that a compaction clipped, collapsed or offloaded. The prompt
        contains its handle instead, such as `h_52ft5e7ibp`."""
        session = session_or_404(call, session_id)
        try:
            content = contents.content_find(session=session, handle=handle)
        except ContentLost as error:
            raise NotFound(str(error), code="content_lost", param="handle") from None
        if content is None:
            raise NotFound(f"No content with the handle {handle!r} in this session.", param="handle")
        return json_response(content_json(call, content))


def content_json(call: ApiCall, content: contents.Content) -> dict[str, Any]:
    offset = int_param(call, "offset", default=0)
    limit = int_param(call, "limit", default=1_000_000, minimum=1)
    unit = call.query.get("unit", "lines")
    if unit not in _UNITS:
        raise InvalidField("unit", "`unit` must be `lines` or `characters`.")
    found: dict[str, Any] = {
        "handle": content.handle,
        "position": content.position,
        "turn": content.turn,
        "tool": content.tool,
        "rule": content.rule,
        "lines": len(content.text.splitlines()),
        "characters": len(content.text),
    }
    around = int_param(call, "context", default=0, maximum=20)
    if pattern := call.query.get("grep"):
        try:
            matches, count = contents.grep(content.text, pattern, context=around)
        except BadPattern as error:
            raise InvalidField("grep", f"`grep` is not a valid regular expression: {error}") from None
        return found | {"matches": matches, "match_count": count}
    text, after = _UNITS[unit](content.text, offset=offset, limit=limit)
    return found | {"unit": unit, "offset": offset, "text": text, "next_offset": after}
