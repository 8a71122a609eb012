"""Validation of messages that need not be stored."""

from __future__ import annotations

from rest_framework import serializers

from sessions.api.serializers.fields import FormatField, PlainText, Strict


class ValidateRequest(Strict):
    format = FormatField()
    messages = serializers.ListField(child=serializers.DictField())
    system = serializers.JSONField(required=False, allow_null=True)
    tools = serializers.ListField(child=serializers.DictField(), required=False, allow_null=True)
    model = PlainText(
        required=False, allow_blank=True, max_length=200, help_text="its name says which rules hold"
    )


class Violation(serializers.Serializer):
    rule = serializers.CharField(help_text="as in the table of rules: A1 to A12, C1 to C5")
    position = serializers.IntegerField(help_text="index of the message, from 0")
    message = serializers.CharField()


class Validity(serializers.Serializer):
    valid = serializers.BooleanField()
    violations = Violation(many=True)
