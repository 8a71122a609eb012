"""Validation of prompts."""

from __future__ import annotations

from rest_framework import serializers

from sessions.api.serializers.fields import FormatField, PlainText, Strict


class ValidateRequest(Strict):
    format = FormatField(help_text="The provider format of the messages.")
    messages = serializers.ListField(child=serializers.DictField(), help_text="Messages to check.")
    system = serializers.JSONField(
        required=False, allow_null=True, help_text="System prompt: a string or content blocks."
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
