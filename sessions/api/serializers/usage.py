"""Usage: turns, tokens and cost."""

from __future__ import annotations

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers

from sessions.api.serializers.fields import TokensBilled


class UsageTotal(serializers.Serializer):
    turns = serializers.IntegerField(help_text="Number of turns.")
    unpriced_turns = serializers.IntegerField(help_text="Turns of a model without a known price.")
    billed_tokens = TokensBilled(help_text="Billed tokens.")
    cost_microusd = serializers.IntegerField(
        help_text="Cost in millionths of a dollar, without unpriced turns."
    )


class UsageRow(UsageTotal):
    day = serializers.DateField(required=False, help_text="With `group_by=day`.")
    model = serializers.CharField(required=False, help_text="With `group_by=model`.")
    agent = serializers.CharField(required=False, help_text="With `group_by=agent`.")
    tag = serializers.CharField(
        required=False, help_text='With `group_by=tag`; "" for sessions without tags.'
    )


Usage = inline_serializer(  # `from` cannot be the name of an attribute
    "Usage",
    {
        "from": serializers.DateField(help_text="First day of the period."),
        "to": serializers.DateField(help_text="Last day of the period, inclusive."),
        "time_zone": serializers.CharField(help_text="Time zone of the days."),
        "group_by": serializers.ListField(child=serializers.CharField(), help_text="How `data` is grouped."),
        "total": UsageTotal(help_text="Totals of the period."),
        "data": UsageRow(many=True, help_text="Totals of each group."),
    },
)
