"""Replays and their results."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from compaction.policy import PRESETS
from replay.models import ReplayRun
from replay.services.runs import MAX_SESSIONS, REQUESTABLE
from sessions.api.serializers.fields import NextCursor, PlainText, PolicyField, Strict
from sessions.api.serializers.validation import RULE


class Newest(Strict):
    count = serializers.IntegerField(
        min_value=1, max_value=MAX_SESSIONS, default=20, help_text="Number of sessions."
    )
    agent = PlainText(
        max_length=100, required=False, allow_blank=True, help_text="Only sessions of this agent."
    )
    model = PlainText(
        max_length=200, required=False, allow_blank=True, help_text="Only sessions of this model."
    )


class ReplayCreate(Strict):
    sessions = serializers.ListField(
        child=PlainText(max_length=200),
        max_length=MAX_SESSIONS,
        required=False,
        help_text="Ids of sessions to replay. Defaults to `newest`.",
    )
    newest = Newest(required=False, help_text="Replay the newest sessions instead of given ones.")
    policies = serializers.ListField(
        child=PolicyField(),
        max_length=20,
        required=False,
        help_text=f"Policies to compare. Defaults to {', '.join(PRESETS)}.",
    )
    ratios = serializers.ListField(
        child=serializers.FloatField(min_value=0.01, max_value=1.0),
        max_length=20,
        required=False,
        help_text="Budgets as shares of each session's largest prompt.",
    )
    budgets = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=100_000_000),
        max_length=20,
        required=False,
        help_text="Budgets in provider tokens.",
    )
    with_model = serializers.BooleanField(
        required=False,
        help_text="Summarize with the project's model, after you confirm the estimated cost.",
    )
    title = PlainText(max_length=200, required=False, allow_blank=True, help_text="Title in the dashboard.")

    def validate(self, attrs: Any) -> Any:
        if "sessions" in attrs and "newest" in attrs:
            raise serializers.ValidationError("Set either `sessions` or `newest`, not both.", code=RULE)
        return attrs


class ReplayChange(Strict):
    state = serializers.ChoiceField(
        choices=REQUESTABLE, help_text="`running` confirms or resumes the replay, `cancelled` stops it."
    )


class Replay(serializers.Serializer):
    id = serializers.UUIDField(help_text="The replay's id.")
    title = serializers.CharField(allow_blank=True, help_text="Title in the dashboard.")
    state = serializers.ChoiceField(choices=ReplayRun.State.choices, help_text="State of the replay.")
    sessions = serializers.IntegerField(help_text="Number of sessions.")
    steps = serializers.IntegerField(help_text="Number of results to compute: sessions × policies × budgets.")
    done = serializers.IntegerField(help_text="Number of results computed so far.")
    with_model = serializers.BooleanField(help_text="Whether a model writes the summaries.")
    estimate_microusd = serializers.IntegerField(
        allow_null=True, help_text="Estimated cost of the model's summaries in millionths of a dollar."
    )
    created_at = serializers.DateTimeField(help_text="When the replay was created.")
    finished_at = serializers.DateTimeField(allow_null=True, help_text="When the replay finished.")


class ReplayRefs(serializers.Serializer):
    used = serializers.IntegerField(
        help_text="Identifiers in answers that the recorded prompt had mentioned."
    )
    kept = serializers.IntegerField(help_text="Of those, identifiers in the replayed prompt.")
    recoverable = serializers.IntegerField(
        help_text="Of those, identifiers that a handle in the prompt retrieves."
    )
    lost = serializers.IntegerField(help_text="Of those, identifiers that were neither.")
    searched = serializers.IntegerField(
        help_text="Number of lost identifiers searched for with `search_history`, up to 40 per session."
    )
    found = serializers.IntegerField(
        help_text="Number of these whose last earlier mention was among the first five hits."
    )


class ReplayRow(serializers.Serializer):
    policy = serializers.CharField(help_text="Name of the policy.")
    budget = serializers.CharField(help_text="Budget as a share or in tokens.")
    sessions = serializers.IntegerField(help_text="Number of sessions with results.")
    calls = serializers.IntegerField(help_text="Number of simulated calls.")
    valid = serializers.IntegerField(help_text="Calls whose prompt was valid for the provider.")
    fits = serializers.IntegerField(help_text="Calls whose prompt fit the budget.")
    prompt_tokens = serializers.IntegerField(help_text="Total prompt tokens.")
    cached_tokens = serializers.IntegerField(help_text="Prompt tokens read from the cache.")
    output_tokens = serializers.IntegerField(help_text="Output tokens.")
    compactions = serializers.IntegerField(help_text="Number of compactions.")
    rebilled = serializers.IntegerField(help_text="Tokens re-written to the cache after compactions.")
    references = ReplayRefs(help_text="What happened to content that later answers used.")
    losing = serializers.IntegerField(help_text="Sessions that lost at least one reference.")
    cost_microusd = serializers.IntegerField(allow_null=True, help_text="Cost with prompt caching.")
    cost_uncached_microusd = serializers.IntegerField(
        allow_null=True, help_text="Cost without prompt caching."
    )
    summaries_microusd = serializers.IntegerField(help_text="Cost of the summaries.")
    on_front = serializers.BooleanField(
        help_text="Pareto-optimal: no other setting whose prompts all fit has lower cost and fewer losses."
    )


class ReplayDetail(Replay):
    rows = ReplayRow(many=True, help_text="Results by policy and budget.")


class ReplayList(serializers.Serializer):
    data = Replay(many=True, help_text="The replays.")
    next_cursor = NextCursor()


class ReplayLost(serializers.Serializer):
    turn = serializers.IntegerField(help_text="Turn that references the content.")
    name = serializers.CharField(help_text="The referenced name.")
    position = serializers.IntegerField(help_text="Position of the last message that mentioned it.")
    seen_turn = serializers.IntegerField(help_text="Turn of that message.")
    why = serializers.CharField(
        help_text="`hidden` (has a handle), `evicted`, or `over` (the prompt is invalid or too large)."
    )


class ReplayCurve(serializers.Serializer):
    policy = serializers.CharField(help_text="Name of the policy.")
    budget = serializers.CharField(help_text="Budget as a share or in tokens.")
    budget_tokens = serializers.IntegerField(
        allow_null=True,
        help_text="Budget in provider tokens, like `prompts`. `null` in results of earlier versions.",
    )
    turns = serializers.ListField(child=serializers.IntegerField(), help_text="Turn of each call.")
    prompts = serializers.ListField(child=serializers.IntegerField(), help_text="Prompt tokens of each call.")
    cached = serializers.ListField(
        child=serializers.IntegerField(), help_text="Prompt tokens of each call read from the cache."
    )
    lost = serializers.ListField(child=serializers.IntegerField(), help_text="Lost references of each call.")
    compacted = serializers.ListField(
        child=serializers.IntegerField(), help_text="Turns at which a compaction ran."
    )
    first_lost = ReplayLost(allow_null=True, help_text="The first lost reference.")
    examples = ReplayLost(many=True, help_text="Examples of lost references.")


class ReplaySession(serializers.Serializer):
    session = serializers.UUIDField(help_text="The session.")
    data = ReplayCurve(many=True, help_text="Results by policy and budget.")
