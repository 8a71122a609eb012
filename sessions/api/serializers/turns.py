"""Turns and prompts."""

from __future__ import annotations

from rest_framework import serializers

from sessions.api.serializers.fields import (
    MAX_TOKENS,
    FormatField,
    PlainText,
    Positions,
    PromptSize,
    Strict,
    TokensBilled,
)


class TurnPush(Strict):
    """One turn. `messages` are the provider's, in the session's format, stored as they are."""

    messages = serializers.ListField(child=serializers.DictField(), min_length=1)
    usage = serializers.DictField(required=False, help_text="as the provider reported it")
    model = PlainText(required=False, allow_blank=True, max_length=200)
    system = serializers.JSONField(required=False)
    tools = serializers.ListField(child=serializers.JSONField(), required=False)
    expected_turn = serializers.IntegerField(required=False, min_value=0, max_value=MAX_TOKENS)


class Fired(serializers.Serializer):
    trigger = serializers.CharField()
    compaction = serializers.IntegerField(allow_null=True)
    state = serializers.CharField()
    reason = serializers.CharField()


class Redacted(serializers.Serializer):
    kind = serializers.CharField()
    count = serializers.IntegerField()


class TurnPushed(serializers.Serializer):
    turn = serializers.IntegerField()
    positions = Positions()
    prompt = PromptSize()
    cost_microusd = serializers.IntegerField(allow_null=True, help_text="null: unpriced, or no usage")
    fired = Fired(many=True)
    redacted = Redacted(many=True)


class Turn(serializers.Serializer):
    turn = serializers.IntegerField()
    at = serializers.DateTimeField()
    model = serializers.CharField()
    positions = Positions(allow_null=True)
    messages = serializers.ListField(child=serializers.DictField())
    prompt_estimate = serializers.IntegerField()
    prompt_reported = serializers.IntegerField(allow_null=True)
    prompt_served = serializers.IntegerField(allow_null=True)
    components = serializers.DictField(child=serializers.IntegerField())
    usage = TokensBilled(allow_null=True)
    cost_microusd = serializers.IntegerField(allow_null=True)


class TurnPage(serializers.Serializer):
    data = Turn(many=True)
    next_cursor = serializers.CharField(allow_null=True)


class ManifestEntry(serializers.Serializer):
    positions = Positions(help_text="the pushed messages that this one shows or stands for")
    role = serializers.CharField()
    rule = serializers.CharField(help_text="`verbatim`, or the strategy that made it look as it does")
    tokens_raw = serializers.IntegerField()
    tokens = serializers.IntegerField()


class Prompt(serializers.Serializer):
    format = FormatField()
    turn = serializers.IntegerField(help_text="the prompt after this turn; -1 before the first")
    system = serializers.JSONField(required=False)
    messages = serializers.ListField(child=serializers.DictField())
    tools = serializers.ListField(child=serializers.DictField(), required=False)
    tokens = serializers.IntegerField()
    raw_tokens = serializers.IntegerField()
    budget = serializers.IntegerField()
    occupancy = serializers.FloatField()
    fits = serializers.BooleanField()
    reason = serializers.CharField(allow_null=True, help_text="why it does not fit")
    compactions = serializers.IntegerField(help_text="records so far, those that changed nothing included")
    manifest = ManifestEntry(many=True, required=False)
