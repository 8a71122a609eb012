"""`prompts/validate/`: whether a provider would take these messages. Nothing is stored."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpResponse

from accounts.models import Scope
from compaction.capabilities import capabilities_of
from compaction.validation import validate
from sessions.api import serializers
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import InvalidRequest
from sessions.api.schema import error_responses, operation

#: A whole prompt holds the messages of many pushes.
_PROMPT_OF_PUSHES = 10


class Validate(Endpoint):
    @operation(
        operation_id="prompts_validate",
        summary="Check whether a provider takes these messages",
        request=serializers.ValidateRequest,
        responses={200: serializers.Validity, **error_responses(400, 413, 415)},
    )
    def post(self, call: ApiCall) -> HttpResponse:
        data = serializers.validated(serializers.ValidateRequest, call.body)
        limit = settings.CONTEXTAPP_MAX_MESSAGES * _PROMPT_OF_PUSHES
        if len(data["messages"]) > limit:
            raise InvalidRequest(
                "too_many_messages",
                f"{len(data['messages']):,} messages; at most {limit:,} are checked at once",
                param="messages",
                status=413,
            )
        # The messages as they came: a serializer's copy is slower to make than the check itself.
        found = validate(
            call.body["messages"],
            data["format"],
            system=data.get("system"),
            tools=data.get("tools"),
            capabilities=capabilities_of(data.get("model", "")),
        )
        violations = [
            {"rule": violation.rule, "position": violation.position, "message": violation.message}
            for violation in found
        ]
        return json_response({"valid": not violations, "violations": violations})

    scopes = {"POST": Scope.READ}
