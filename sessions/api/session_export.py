"""`sessions/{id}/export/`: a session as JSON Lines, to import it elsewhere."""

from __future__ import annotations

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase

from sessions.api.compactions import JSON_LINES
from sessions.api.endpoint import ApiCall, Endpoint
from sessions.api.lookup import session_or_404
from sessions.api.schema import operation
from sessions.api.serializers import sessions as serializers
from sessions.selectors.session_export import session_jsonl


class SessionExport(Endpoint):
    @operation("sessions_export", "Export a session", responses={(200, JSON_LINES): serializers.ExportedLine})
    def get(self, call: ApiCall, session_id: str) -> HttpResponseBase:
        """Streams the session as JSON Lines: its facts, system prompts and tools, turns, messages and
        comments. `POST imports/` imports it again, also in another project or instance. Compactions and the
        working memory are omitted."""
        session = session_or_404(call, session_id)
        return StreamingHttpResponse(session_jsonl(session), content_type=JSON_LINES)
