"""`sessions/{id}/messages/{position}/pin/`: messages that compactions leave unchanged."""

from __future__ import annotations

from typing import ClassVar

from django.http import HttpResponse

from accounts.models import Scope
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import NotFound
from sessions.api.lookup import session_or_404
from sessions.api.schema import operation
from sessions.api.serializers import contents as serializers
from sessions.api.serializers.fields import MAX_TOKENS
from sessions.services.sessions.pins import message_pin


class Pin(Endpoint):
    scopes: ClassVar = {"PUT": Scope.PUSH, "DELETE": Scope.PUSH}

    @operation("pins_put", "Pin a message", serializers.Pinned)
    def put(self, call: ApiCall, session_id: str, position: int) -> HttpResponse:
        """Pins a message: later compactions leave it and the rest of its tool group unchanged. Edits by
        earlier compactions stay; revert the compaction to restore the message."""
        return self._set(call, session_id, position, pinned=True)

    @operation("pins_delete", "Unpin a message", serializers.Pinned)
    def delete(self, call: ApiCall, session_id: str, position: int) -> HttpResponse:
        """Unpins a message: later compactions may edit it again."""
        return self._set(call, session_id, position, pinned=False)

    def _set(self, call: ApiCall, session_id: str, position: int, *, pinned: bool) -> HttpResponse:
        session = session_or_404(call, session_id)
        # Postgres rejects positions above the column's range.
        if position > MAX_TOKENS or not message_pin(
            session=session, position=position, pinned=pinned, actor=call.actor
        ):
            raise NotFound(f"No message at position {position} in this session.", param="position")
        return json_response({"position": position, "pinned": pinned})
