"""Replays."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from compaction.policy import PRESETS
from replay.models import ReplayRun
from replay.services.runs import MAX_SESSIONS, WANTED
from sessions.api.serializers.fields import PlainText, PolicyField, Strict


class Newest(Strict):
    count = serializers.IntegerField(min_value=1, max_value=MAX_SESSIONS, default=20)
    agent = PlainText(max_length=100, required=False, allow_blank=True)
    model = PlainText(max_length=200, required=False, allow_blank=True)


class ReplayCreate(Strict):
    sessions = serializers.ListField(
        child=PlainText(max_length=200),
        max_length=MAX_SESSIONS,
        required=False,
        help_text="ids; without them the newest sessions",
    )
    newest = Newest(required=False)
    policies = serializers.ListField(
        child=PolicyField(), max_length=20, required=False, help_text=f"else {', '.join(PRESETS)}"
    )
    ratios = serializers.ListField(
        child=serializers.FloatField(min_value=0.01, max_value=1.0),
        max_length=20,
        required=False,
        help_text="budgets as shares of each session's largest prompt",
    )
    budgets = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=100_000_000),
        max_length=20,
        required=False,
        help_text="budgets in tokens, as the provider counts them",
    )
    with_model = serializers.BooleanField(
        required=False,
        help_text="recaps by the project's model: estimated first, then waits for its confirmation",
    )
    title = PlainText(max_length=200, required=False, allow_blank=True)

    def validate(self, attrs: Any) -> Any:
        if "sessions" in attrs and "newest" in attrs:
            raise serializers.ValidationError("either `sessions` or `newest`")
        return attrs


class ReplayChange(Strict):
    state = serializers.ChoiceField(
        choices=WANTED, help_text="`running` confirms or takes up again, `cancelled` ends"
    )


class Replay(serializers.Serializer):
    id = serializers.UUIDField()
    title = serializers.CharField(allow_blank=True)
    state = serializers.ChoiceField(choices=ReplayRun.State.choices)
    sessions = serializers.IntegerField()
    steps = serializers.IntegerField(help_text="results wanted: sessions × policies × budgets")
    done = serializers.IntegerField(help_text="results made")
    with_model = serializers.BooleanField()
    estimate_microusd = serializers.IntegerField(
        allow_null=True, help_text="what the model's summaries would cost"
    )
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class ReplayRefs(serializers.Serializer):
    used = serializers.IntegerField()
    kept = serializers.IntegerField()
    recoverable = serializers.IntegerField()
    lost = serializers.IntegerField()


class ReplayRow(serializers.Serializer):
    policy = serializers.CharField()
    budget = serializers.CharField(help_text="a share, or tokens")
    sessions = serializers.IntegerField()
    calls = serializers.IntegerField()
    valid = serializers.IntegerField()
    fits = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    compactions = serializers.IntegerField()
    rebilled = serializers.IntegerField()
    references = ReplayRefs()
    losing = serializers.IntegerField(help_text="sessions that lost a reference")
    cost_microusd = serializers.IntegerField(allow_null=True)
    cost_uncached_microusd = serializers.IntegerField(allow_null=True)
    summaries_microusd = serializers.IntegerField()
    on_front = serializers.BooleanField(
        help_text="no other setting whose prompts all fit costs as little and loses less"
    )


class ReplayDetail(Replay):
    rows = ReplayRow(many=True)


class ReplayList(serializers.Serializer):
    data = Replay(many=True)
    next_cursor = serializers.CharField(allow_null=True)


class ReplayLost(serializers.Serializer):
    turn = serializers.IntegerField()
    name = serializers.CharField()
    position = serializers.IntegerField()
    seen_turn = serializers.IntegerField()
    why = serializers.CharField()


class ReplayCurve(serializers.Serializer):
    policy = serializers.CharField()
    budget = serializers.CharField()
    turns = serializers.ListField(child=serializers.IntegerField())
    prompts = serializers.ListField(child=serializers.IntegerField(), help_text="tokens a call")
    cached = serializers.ListField(child=serializers.IntegerField())
    lost = serializers.ListField(child=serializers.IntegerField())
    compacted = serializers.ListField(child=serializers.IntegerField(), help_text="turns")
    first_lost = ReplayLost(allow_null=True)
    examples = ReplayLost(many=True)


class ReplaySession(serializers.Serializer):
    session = serializers.UUIDField()
    data = ReplayCurve(many=True)
