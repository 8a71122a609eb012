"""Compactions."""

from __future__ import annotations

from rest_framework import serializers

from sessions.api.serializers.fields import PlainText, PolicyField, Positions, Strict


class CompactRequest(Strict):
    instructions = PlainText(required=False, allow_blank=True, max_length=4_000)
    policy = PolicyField(required=False)
    preview = serializers.BooleanField(required=False)


class RecapText(Strict):
    text = PlainText(max_length=100_000, help_text="sections and items, as the recap has them")


class Compaction(serializers.Serializer):
    number = serializers.IntegerField(allow_null=True, help_text="null: a preview")
    state = serializers.CharField()
    trigger = serializers.CharField()
    reason = serializers.CharField(allow_blank=True)
    instructions = serializers.CharField(allow_blank=True)
    turn = serializers.IntegerField(help_text="the first turn whose prompt shows the edits")
    tokens_before = serializers.IntegerField(allow_null=True)
    tokens_after = serializers.IntegerField(allow_null=True)
    record = serializers.DictField(help_text="every figure of the plan, see docs/concepts/compaction.md")
    cost_microusd = serializers.IntegerField(allow_null=True)
    created_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


class CompactionPage(serializers.Serializer):
    data = Compaction(many=True)
    next_cursor = serializers.CharField(allow_null=True)


class EditShown(serializers.Serializer):
    strategy = serializers.CharField()
    op = serializers.CharField()
    positions = Positions()
    part = serializers.IntegerField(allow_null=True)
    text = serializers.CharField(allow_blank=True)
    handle = serializers.CharField(allow_null=True)
    reason = serializers.CharField(allow_blank=True)
    tokens_before = serializers.IntegerField()
    tokens_after = serializers.IntegerField()


class CompactionDetail(Compaction):
    recap = serializers.CharField(allow_null=True)
    edits = EditShown(many=True)
