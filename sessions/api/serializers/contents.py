"""Contents behind handles, search, and the agent's tools."""

from __future__ import annotations

from rest_framework import serializers

from sessions.api.serializers.fields import PlainText, Strict


class Match(serializers.Serializer):
    line = serializers.IntegerField(help_text="from 1")
    text = serializers.CharField(allow_blank=True)
    match = serializers.BooleanField(help_text="false: a line of the context")


class Content(serializers.Serializer):
    """The whole content, a piece of it, or with `grep` the lines that match."""

    handle = serializers.CharField()
    position = serializers.IntegerField()
    turn = serializers.IntegerField()
    tool = serializers.CharField(allow_blank=True)
    rule = serializers.CharField()
    lines = serializers.IntegerField()
    characters = serializers.IntegerField()
    unit = serializers.CharField(required=False)
    offset = serializers.IntegerField(required=False)
    text = serializers.CharField(required=False, allow_blank=True)
    next_offset = serializers.IntegerField(required=False, allow_null=True)
    matches = Match(many=True, required=False)
    match_count = serializers.IntegerField(required=False)


class Pinned(serializers.Serializer):
    position = serializers.IntegerField()
    pinned = serializers.BooleanField()


class Hit(serializers.Serializer):
    position = serializers.IntegerField()
    turn = serializers.IntegerField()
    role = serializers.CharField()
    tool = serializers.CharField(allow_blank=True)
    snippet = serializers.CharField(allow_blank=True)


class SearchPage(serializers.Serializer):
    data = Hit(many=True)
    next_cursor = serializers.CharField(allow_null=True)


class ToolCall(Strict):
    name = PlainText(max_length=100)
    arguments = serializers.JSONField(required=False, help_text="an object, or its JSON as text")


class ToolAnswer(serializers.Serializer):
    content = serializers.CharField(allow_blank=True)
    is_error = serializers.BooleanField()


class Tools(serializers.Serializer):
    format = serializers.CharField()
    tools = serializers.ListField(child=serializers.DictField())
