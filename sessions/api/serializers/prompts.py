"""Compaction and validation of prompts without a session."""

from __future__ import annotations

from rest_framework import serializers

from sessions.api.serializers.compactions import CompactionEdit
from sessions.api.serializers.fields import (
    MAX_TOKENS,
    BudgetField,
    CalibrationSize,
    FormatField,
    PlainText,
    PolicyField,
    PromptBody,
    Strict,
)


class MessageWindow(Strict):
    """A window by number of messages."""

    max_messages = serializers.IntegerField(
        min_value=1,
        max_value=MAX_TOKENS,
        help_text="Keep at most this many messages; the oldest are removed first.",
    )
    preserve_system = serializers.BooleanField(
        required=False, default=True, help_text="Keep leading system messages. They count toward the limit."
    )
    min_keep_recent = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=MAX_TOKENS,
        help_text="Keep this many of the newest messages even if that exceeds the limit.",
    )


class PromptCompactRequest(Strict):
    """A prompt to compact."""

    messages = serializers.ListField(
        child=serializers.DictField(), help_text="The whole message list, each in any supported format."
    )
    system = serializers.JSONField(
        required=False,
        allow_null=True,
        help_text="System prompt: a string, content blocks, or Gemini's `systemInstruction`.",
    )
    tools = serializers.ListField(
        child=serializers.JSONField(), required=False, allow_null=True, help_text="Tool definitions."
    )
    format = FormatField(
        required=False,
        help_text="Format of the returned messages. Defaults to detecting it from the tool definitions and "
        "the messages.",
    )
    model = PlainText(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="Model that will be called. Determines the default budget, how tokens are counted, and "
        "which rules the messages must meet.",
    )
    budget = BudgetField(
        required=False, help_text="Defaults to the model's context window minus room for the output."
    )
    policy = PolicyField(
        required=False,
        help_text="How to compact: a preset's name, or an object with `preset` and overrides. Defaults to "
        "`balanced`. See docs/reference/policies.md.",
    )
    window = MessageWindow(
        required=False, help_text="Remove the oldest messages by number, before any compaction."
    )
    force = serializers.BooleanField(
        required=False, default=False, help_text="Compact even if the messages are below the `hard` trigger."
    )


class TrimStats(serializers.Serializer):
    dropped_messages = serializers.IntegerField(help_text="Messages removed.")
    dropped_turns = serializers.IntegerField(help_text="How many of them are from the model.")
    pairs_kept = serializers.IntegerField(help_text="Tool calls kept together with their results.")
    over_by = serializers.IntegerField(
        help_text="Messages beyond `max_messages` that had to be kept, for example to keep a tool call with "
        "its result."
    )


class CompactedPrompt(PromptBody):
    calibration = CalibrationSize(help_text="How the model's provider is assumed to count.")
    window = TrimStats(allow_null=True, help_text="What the message window removed. Null without one.")
    record = serializers.DictField(
        help_text="Statistics of the compaction, as in a session's compactions; `state` is `done`, "
        "`no_gain` or `not_due`. See docs/concepts/compaction.md."
    )
    recap = serializers.CharField(allow_null=True, help_text="The text that replaces evicted messages.")
    edits = CompactionEdit(
        many=True, help_text="The edits, in order. Positions are indices of the request's `messages`."
    )


class ValidateRequest(Strict):
    format = FormatField(help_text="The provider format of the messages.")
    messages = serializers.ListField(child=serializers.DictField(), help_text="Messages to check.")
    system = serializers.JSONField(
        required=False,
        allow_null=True,
        help_text="System prompt: a string, content blocks, or Gemini's `systemInstruction`.",
    )
    tools = serializers.ListField(
        child=serializers.DictField(), required=False, allow_null=True, help_text="Tool definitions."
    )
    model = PlainText(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="Model for which to check; some rules depend on it.",
    )


class Violation(serializers.Serializer):
    rule = serializers.CharField(
        help_text="The violated rule, such as A1 (Anthropic), C1 (Chat Completions) or R1 (Responses)."
    )
    position = serializers.IntegerField(help_text="Index of the message, from 0.")
    message = serializers.CharField(help_text="What is wrong.")


class ValidationResult(serializers.Serializer):
    valid = serializers.BooleanField(help_text="Whether there are no violations.")
    violations = Violation(many=True, help_text="The violated rules.")
