"""Cost and tokens."""

from __future__ import annotations

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers

from sessions.api.serializers.fields import TokensBilled


class UsageTotal(serializers.Serializer):
    turns = serializers.IntegerField()
    unpriced_turns = serializers.IntegerField(help_text="turns with usage of a model that has no price")
    billed_tokens = TokensBilled()
    cost_microusd = serializers.IntegerField(help_text="1,000,000 are a dollar; without the unpriced turns")


class UsageRow(UsageTotal):
    day = serializers.DateField(required=False)
    model = serializers.CharField(required=False)
    agent = serializers.CharField(required=False)
    tag = serializers.CharField(required=False, help_text='"" for sessions without a tag')


Usage = inline_serializer(  # `from` is no name for an attribute
    "Usage",
    {
        "from": serializers.DateField(),
        "to": serializers.DateField(),
        "time_zone": serializers.CharField(),
        "group_by": serializers.ListField(child=serializers.CharField()),
        "total": UsageTotal(),
        "data": UsageRow(many=True),
    },
)
