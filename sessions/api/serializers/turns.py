"""Turns and prompts."""

from __future__ import annotations

from rest_framework import serializers

from sessions.api.serializers.fields import (
    COMPACTION_COUNT,
    MAX_TOKENS,
    CallId,
    Latency,
    LatencyReported,
    NextCursor,
    PlainText,
    Positions,
    PromptBody,
    PromptSize,
    Strict,
    TokensBilled,
)


class TurnPush(Strict):
    """A turn to push."""

    messages = serializers.ListField(
        child=serializers.DictField(),
        min_length=1,
        help_text="Messages exactly as sent to or received from the provider, each in any supported format.",
    )
    usage = serializers.DictField(
        required=False, allow_null=True, help_text="The provider's `usage` object, unchanged."
    )
    latency = LatencyReported(
        required=False, allow_null=True, help_text="How long the model call took, as you measured it."
    )
    request_id = CallId(
        required=False,
        help_text="The provider's request id of the call: `request-id` of Anthropic's response headers, "
        "`x-request-id` of OpenAI's. A call that the gateway, telemetry or a log also reports is then "
        "stored and counted once.",
    )
    response_id = CallId(required=False, help_text="The `id` of the provider's response. Works the same way.")
    context_management = serializers.DictField(
        required=False,
        allow_null=True,
        help_text="Anthropic's `context_management` of the response, unchanged. What it cleared is recorded "
        "as a compaction by the provider.",
    )
    input_transformations = serializers.ListField(
        child=serializers.DictField(),
        required=False,
        allow_null=True,
        help_text="Anthropic's `input_transformations` of the response, unchanged.",
    )
    model = PlainText(
        required=False,
        allow_blank=True,
        allow_null=True,
        max_length=200,
        help_text="Model of this call. Defaults to the session's.",
    )
    system = serializers.JSONField(
        required=False, help_text="New system prompt. Replaces the session's from this turn on."
    )
    tools = serializers.ListField(
        child=serializers.JSONField(),
        required=False,
        help_text="New tool definitions. Replace the session's from this turn on; `[]` removes them.",
    )
    expected_turn = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=MAX_TOKENS,
        help_text="The index that this turn must get. If another writer pushed first, the response is 409.",
    )


class TriggeredCompaction(serializers.Serializer):
    trigger = serializers.CharField(help_text="The trigger, such as `soft` or `hard`.")
    compaction = serializers.IntegerField(allow_null=True, help_text="Number of the compaction, if any.")
    state = serializers.CharField(help_text="State of the compaction; `pending` if a worker will run it.")
    reason = serializers.CharField(help_text="Why it ran, or why it had no effect.")


class Redacted(serializers.Serializer):
    kind = serializers.CharField(help_text="Kind of secret, such as `aws-access-key`.")
    count = serializers.IntegerField(help_text="Number of occurrences.")


class OutputSpike(serializers.Serializer):
    tokens = serializers.IntegerField(help_text="Estimated tokens of the turn's tool outputs.")
    mean = serializers.IntegerField(help_text="Mean of the earlier turns.")
    position = serializers.IntegerField(help_text="Position of the message with the largest output.")
    tool = serializers.CharField(help_text="Tool of that output. Empty if an earlier push made the call.")


class TurnPushed(serializers.Serializer):
    turn = serializers.IntegerField(help_text="Index of the turn, from 0.")
    positions = Positions(help_text="Positions of the pushed messages.")
    prompt = PromptSize(help_text="Size of the prompt after the push.")
    cost_microusd = serializers.IntegerField(
        allow_null=True,
        help_text="Cost of the call in millionths of a dollar. Null without usage or a known price.",
    )
    fired = TriggeredCompaction(many=True, help_text="Compactions that this push triggered.")
    output_spike = OutputSpike(
        allow_null=True,
        help_text="Set if the turn's tool outputs are a spike: at least 15% of the budget and, from the "
        "fourth turn on, more than four times the mean.",
    )
    redacted = Redacted(many=True, help_text="Secrets that were redacted.")


class Turn(serializers.Serializer):
    turn = serializers.IntegerField(help_text="Index of the turn, from 0.")
    at = serializers.DateTimeField(
        help_text="When the turn was pushed, or when its call ended if another source reported it."
    )
    source = serializers.ChoiceField(
        choices=["push", "gateway", "telemetry", "log"],
        help_text="What stored the turn. Other sources that report the same call do not store it again.",
    )
    model = serializers.CharField(help_text="Model of the call, if given.")
    positions = Positions(allow_null=True, help_text="Positions of the turn's messages.")
    messages = serializers.ListField(
        child=serializers.DictField(), help_text="The messages as pushed, with secrets redacted."
    )
    prompt_estimate = serializers.IntegerField(
        help_text="Estimated tokens of the call's prompt without compaction."
    )
    prompt_reported = serializers.IntegerField(
        allow_null=True, help_text="Prompt tokens that the provider reported."
    )
    prompt_served = serializers.IntegerField(
        allow_null=True, help_text="Estimated tokens of the call's prompt after compaction."
    )
    components = serializers.DictField(
        child=serializers.IntegerField(), help_text="Estimated prompt tokens by component."
    )
    usage = TokensBilled(allow_null=True, help_text="Billed tokens of the call.")
    output_reported = serializers.IntegerField(
        allow_null=True,
        help_text="Output tokens in an imported log that are far below the length of the answer. "
        "`usage.output` is then an estimate. Null otherwise.",
    )
    cost_microusd = serializers.IntegerField(
        allow_null=True, help_text="Cost of the call in millionths of a dollar."
    )
    billed = serializers.BooleanField(
        help_text="Whether the session's totals count the call. False if those of another session do: a fork "
        "copies the turns before it."
    )
    latency = Latency(allow_null=True, help_text="How long the call took. Null if it was not reported.")
    output_spike = serializers.IntegerField(
        allow_null=True, help_text="Estimated tokens of the turn's tool outputs, if they are a spike."
    )


class TurnPage(serializers.Serializer):
    data = Turn(many=True, help_text="The turns.")
    next_cursor = NextCursor()


class ManifestEntry(serializers.Serializer):
    positions = Positions(help_text="The pushed messages that this message shows or replaces.")
    role = serializers.CharField(help_text="Role of the message.")
    rule = serializers.CharField(help_text="`verbatim`, or the strategy that changed or created the message.")
    tokens_raw = serializers.IntegerField(help_text="Estimated tokens of the pushed messages.")
    tokens = serializers.IntegerField(help_text="Estimated tokens of this message.")


class SummaryRequest(serializers.Serializer):
    messages = serializers.IntegerField(help_text="Send only this many of the prompt's messages.")
    before = serializers.IntegerField(
        help_text="Position of the first message that follows the summary. Return it with the summary."
    )
    compaction = serializers.DictField(help_text="The value to send as `compaction`.")
    betas = serializers.ListField(
        child=serializers.CharField(), help_text="Beta headers that the request requires."
    )


class Prompt(PromptBody):
    turn = serializers.IntegerField(help_text="Last turn in the prompt; -1 before the first push.")
    context_management = serializers.JSONField(
        required=False,
        help_text="With the policy's `engine: provider`: the value to send as `context_management`.",
    )
    betas = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="Beta headers that the request requires (Anthropic).",
    )
    summary_request = SummaryRequest(
        required=False,
        help_text="Set if the provider should write a summary now (Anthropic, models that bind thinking to "
        "the prompt). Send it in a separate request, with the same model, system prompt and tools but "
        "without `context_management`, and post the response to `compactions/`.",
    )
    open_calls = serializers.ListField(
        child=serializers.CharField(),
        help_text="Ids of the tool calls that end the prompt. Append their results before the call.",
    )
    compactions = serializers.IntegerField(help_text=COMPACTION_COUNT)
    manifest = ManifestEntry(
        many=True, required=False, help_text="With `manifest=1`: the source of each message."
    )
