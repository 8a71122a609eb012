"""Complete message histories sent by clients."""

from __future__ import annotations

from rest_framework import serializers

from sessions.api.serializers.fields import CallId, LatencyReported, PlainText, Strict
from sessions.api.serializers.turns import Prompt, Redacted


class HistorySent(Strict):
    """A client's history."""

    messages = serializers.ListField(
        child=serializers.DictField(),
        help_text="All messages of the client's history, exactly as it would send them to the provider. "
        "With `previous_response_id`, those that follow that response.",
    )
    usage = serializers.DictField(
        required=False,
        allow_null=True,
        help_text="The `usage` object of the last response in the history, unchanged.",
    )
    latency = LatencyReported(
        required=False, allow_null=True, help_text="How long that response took, as you measured it."
    )
    model = PlainText(
        required=False,
        allow_blank=True,
        allow_null=True,
        max_length=200,
        help_text="Model of that response. Defaults to the session's.",
    )
    system = serializers.JSONField(required=False, help_text="The client's current system prompt.")
    tools = serializers.ListField(
        child=serializers.JSONField(), required=False, help_text="The client's current tool definitions."
    )
    request_id = CallId(
        required=False,
        help_text="The provider's request id of that response. Other sources of the call are matched by it.",
    )
    response_id = CallId(required=False, help_text="The `id` of that response.")
    previous_response_id = CallId(
        required=False,
        help_text="`messages` contains only what follows the response with this id, as in a request to "
        "OpenAI's Responses API. The response must have been reported with its `response_id`, or recorded "
        "by the gateway.",
    )
    context_management = serializers.DictField(
        required=False,
        allow_null=True,
        help_text="Anthropic's `context_management` of that response, unchanged.",
    )
    input_transformations = serializers.ListField(
        child=serializers.DictField(),
        required=False,
        allow_null=True,
        help_text="Anthropic's `input_transformations` of that response, unchanged.",
    )
    compacted = serializers.BooleanField(
        required=False,
        help_text="`true` in the first request after the client replaced messages with a summary. The "
        "summaries of common clients are also recognized without it.",
    )


class Reconciliation(serializers.Serializer):
    session = serializers.UUIDField(
        help_text="The session that contains this history: the requested one or a fork."
    )
    status = serializers.ChoiceField(
        choices=["unchanged", "appended", "compacted", "forked", "side"],
        help_text="`appended`: new messages were stored. `compacted`: the client had compacted its "
        "context. `forked`: the history continues an earlier point, in a forked session. `side`: a request "
        "outside the conversation, stored in a separate session.",
    )
    first_new = serializers.IntegerField(help_text="Index of the first message that was not stored yet.")
    turn = serializers.IntegerField(
        allow_null=True, help_text="Index of the turn that was stored. Null if nothing was new."
    )
    redacted = Redacted(many=True, help_text="Secrets that were redacted.")


class ReconciledPrompt(Prompt):
    """The prompt, as `GET …/prompt/` returns it, and what the call did."""

    reconciled = Reconciliation(help_text="What the call did.")
