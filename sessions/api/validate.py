"""`prompts/validate/`: check messages against a provider's rules. Stores nothing."""

from __future__ import annotations

from django.http import HttpResponse

from accounts.models import Scope
from compaction.capabilities import capabilities_of
from compaction.validation import validate
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.ingestion import check_count, prompt_messages_max
from sessions.api.schema import operation
from sessions.api.serializers import checks as serializers


class Validate(Endpoint):
    @operation(
        "prompts_validate",
        "Validate a prompt",
        serializers.ValidationResult,
        request=serializers.ValidateRequest,
        errors=(413,),
    )
    def post(self, call: ApiCall) -> HttpResponse:
        """Checks whether the provider would accept these messages, for example whether each tool call has a
        result. Stores nothing and calls no provider."""
        data = call.validated(serializers.ValidateRequest)
        check_count(data["messages"], prompt_messages_max())
        # The raw messages: copying them in a serializer takes longer than the check itself.
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
