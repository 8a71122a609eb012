"""Sessions."""

from __future__ import annotations

from rest_framework import serializers

from sessions.api.serializers.fields import (
    MAX_TOKENS,
    FormatField,
    JsonObject,
    PlainText,
    PolicyField,
    PromptSize,
    Strict,
    TokensBilled,
)


class BudgetField(Strict):
    input_tokens = serializers.IntegerField(min_value=1, max_value=MAX_TOKENS)


class SessionCreate(Strict):
    id = PlainText(required=False, min_length=1, max_length=200, trim_whitespace=False)
    model = PlainText(required=False, allow_blank=True, max_length=200)
    format = FormatField(required=False)
    agent = PlainText(required=False, allow_blank=True, max_length=100)
    title = PlainText(required=False, allow_blank=True, max_length=300)
    tags = serializers.ListField(child=PlainText(max_length=100), required=False, max_length=50)
    metadata = JsonObject(required=False)
    budget = BudgetField(required=False)
    policy = PolicyField(required=False)
    system = serializers.JSONField(required=False)
    tools = serializers.ListField(child=serializers.JSONField(), required=False)
    if_exists = serializers.ChoiceField(choices=["error", "return"], required=False, default="error")

    def validate_id(self, value: str) -> str:
        if "/" in value or any(ord(character) < 32 for character in value):
            raise serializers.ValidationError("must not contain `/` or control characters")
        if value in {".", ".."}:  # clients resolve these in an address
            raise serializers.ValidationError("must be more than dots")
        return value


class Session(serializers.Serializer):
    id = serializers.UUIDField()
    external_id = serializers.CharField()
    title = serializers.CharField()
    agent = serializers.CharField()
    model = serializers.CharField()
    format = FormatField()
    origin = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    metadata = serializers.DictField()
    policy = serializers.DictField()
    parent = serializers.UUIDField(allow_null=True)
    created_at = serializers.DateTimeField()
    last_active_at = serializers.DateTimeField()
    turns = serializers.IntegerField()
    messages = serializers.IntegerField()
    compactions = serializers.IntegerField()
    prompt = PromptSize()
    last_prompt_tokens = serializers.IntegerField()
    peak_prompt_tokens = serializers.IntegerField()
    billed_tokens = TokensBilled()
    cost_microusd = serializers.IntegerField()
    unpriced_turns = serializers.IntegerField()


class SessionMade(Session):
    offers = serializers.IntegerField(
        help_text="facts of other sessions that it may take: `GET sessions/{id}/memory/offers/`"
    )


class SessionPage(serializers.Serializer):
    data = Session(many=True)
    next_cursor = serializers.CharField(allow_null=True)
