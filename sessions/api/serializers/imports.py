"""What an import did."""

from __future__ import annotations

from rest_framework import serializers

from sessions.api.serializers.turns import Redacted

STATES = ("new", "grown", "unchanged", "conflict")


class ImportUpload(serializers.Serializer):
    file = serializers.FileField(help_text="one log, not packed")


class ImportedSession(serializers.Serializer):
    id = serializers.UUIDField(allow_null=True)
    external_id = serializers.CharField()
    state = serializers.ChoiceField(choices=STATES)
    turns = serializers.IntegerField(help_text="turns that were added")
    messages = serializers.IntegerField(help_text="messages that were added")
    reason = serializers.CharField(allow_null=True, help_text="of a conflict")
    redacted = Redacted(many=True, help_text="secrets that were taken out")


class Damaged(serializers.Serializer):
    line = serializers.IntegerField()
    reason = serializers.CharField()


class Imported(serializers.Serializer):
    format = serializers.CharField(help_text="the format that the file was recognised as")
    name = serializers.CharField()
    sessions = ImportedSession(many=True)
    damage_count = serializers.IntegerField()
    damages = Damaged(many=True, help_text="the first 100 lines that could not be read")
