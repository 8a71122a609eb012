"""`sessions/{id}/messages/{position}/pin/`: messages that no compaction may touch."""

from __future__ import annotations

from typing import ClassVar

from django.http import HttpResponse

from accounts.models import Scope
from sessions.api import serializers
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import NotFound
from sessions.api.lookup import session_or_404
from sessions.api.schema import error_responses, operation
from sessions.services.sessions.pins import message_pin


class Pin(Endpoint):
    scopes: ClassVar = {"PUT": Scope.PUSH, "DELETE": Scope.PUSH}

    @operation(
        operation_id="pins_put",
        summary="Pin a message: no later compaction edits it",
        request=None,
        responses={200: serializers.Pinned, **error_responses()},
    )
    def put(self, call: ApiCall, session_id: str, position: int) -> HttpResponse:
        """The rest of its tool group stays with it. What an earlier compaction did to it stays done: revert
        that compaction to bring it back."""
        return self._set(call, session_id, position, pinned=True)

    @operation(
        operation_id="pins_delete",
        summary="Let a pinned message go",
        responses={200: serializers.Pinned, **error_responses()},
    )
    def delete(self, call: ApiCall, session_id: str, position: int) -> HttpResponse:
        return self._set(call, session_id, position, pinned=False)

    def _set(self, call: ApiCall, session_id: str, position: int, *, pinned: bool) -> HttpResponse:
        session = session_or_404(call, session_id)
        # A position beyond what the column holds is none that a message has.
        if position > serializers.MAX_TOKENS or not message_pin(
            session=session, position=position, pinned=pinned
        ):
            raise NotFound(
                "not_found", f"the session has no message at position {position}", param="position"
            )
        return json_response({"position": position, "pinned": pinned})
