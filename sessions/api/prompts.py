"""`prompts/compact/` and `prompts/validate/`: compact or check messages that the caller keeps."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.http import HttpResponse

from accounts.models import Scope
from compaction.capabilities import capabilities_of
from compaction.message_window import MessageWindow
from compaction.validation import validate
from sessions.api.compactions import plan_json
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.ingestion import check_count, check_messages, check_preamble, prompt_messages_max
from sessions.api.schema import operation
from sessions.api.serializers import prompts as serializers
from sessions.selectors.token_budgets import calibration_json, prompt_size_json
from sessions.services.compactions.stateless import CallerPrompt, CompactedPrompt, prompt_compact
from sessions.store.rawjson import raw_elements


class PromptCompaction(Endpoint):
    @operation(
        "prompts_compact",
        "Compact a prompt",
        serializers.CompactedPrompt,
        request=serializers.PromptCompactRequest,
    )
    def post(self, call: ApiCall) -> HttpResponse:
        """Compacts messages without a session. They are compacted when they reach the
        policy's `hard` share of the budget, or at any size with `force`. Nothing is stored and no model is
        called. Secrets are not redacted: the response contains the caller's own text."""
        return json_response(_to_json(prompt_compact(_read(call))))

    scopes = {"POST": Scope.READ}


def _read(call: ApiCall) -> CallerPrompt:
    """Parse the prompt in the request body. Raises `InvalidRequest`."""
    data = call.validated(serializers.PromptCompactRequest)
    raw, values = raw_elements(call.raw, "messages"), call.body["messages"]
    format, window = data.get("format"), data.get("window")
    check_messages(raw, values, format=format, maximum=prompt_messages_max())
    check_preamble(data.get("system"), data.get("tools"))
    return CallerPrompt(
        raw=raw,
        values=values,
        format=format,
        system=data.get("system"),
        tools=data.get("tools"),
        model=data.get("model", ""),
        own_budget=data["budget"]["input_tokens"] if "budget" in data else None,
        policy=data.get("policy", {}),
        window=MessageWindow(**window) if window is not None else None,
        is_forced=data["force"],
    )


def _to_json(compacted: CompactedPrompt) -> dict[str, Any]:
    plan = compacted.plan
    components = {"before": compacted.before.tokens, "after": compacted.after.tokens}
    size = prompt_size_json(
        shown=compacted.after,
        context=compacted.sent,
        budget=compacted.budget,
        calibration=compacted.calibration,
    )
    return {
        **compacted.fields,
        "format": compacted.format,
        **size,
        "calibration": calibration_json(compacted.calibration),
        "fits": plan.fits,
        "reason": plan.reason or None,
        "window": asdict(compacted.window) if compacted.window is not None else None,
        "record": plan.record.to_json() | {"components": components},
        **plan_json(plan),
    }


class PromptValidation(Endpoint):
    @operation(
        "prompts_validate",
        "Validate a prompt",
        serializers.ValidationResult,
        request=serializers.ValidateRequest,
    )
    def post(self, call: ApiCall) -> HttpResponse:
        """Checks whether the provider would accept these messages, for example whether each tool call has a
        result. Stores nothing and calls no provider."""
        data = call.validated(serializers.ValidateRequest)
        check_count(data["messages"], prompt_messages_max())
        found = validate(
            data["messages"],
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
