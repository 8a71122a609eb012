"""Imports of log files."""

from __future__ import annotations

from rest_framework import serializers

from sessions.api.serializers.turns import Redacted

STATES = ("new", "grown", "unchanged", "conflict")


class ImportUpload(serializers.Serializer):
    file = serializers.FileField(help_text="One uncompressed log file.")


class ImportedSession(serializers.Serializer):
    id = serializers.UUIDField(allow_null=True, help_text="The session, or null for a conflict.")
    external_id = serializers.CharField(help_text="The session's id in the log.")
    state = serializers.ChoiceField(choices=STATES, help_text="What the import did.")
    turns = serializers.IntegerField(help_text="Number of turns added.")
    messages = serializers.IntegerField(help_text="Number of messages added.")
    reason = serializers.CharField(allow_null=True, help_text="Reason of a conflict.")
    redacted = Redacted(many=True, help_text="Secrets that were redacted.")


class DamagedLine(serializers.Serializer):
    line = serializers.IntegerField(help_text="Line number, from 1.")
    reason = serializers.CharField(help_text="Why the line could not be read.")


class ImportResult(serializers.Serializer):
    format = serializers.CharField(help_text="The given or detected log format.")
    name = serializers.CharField(help_text="Name of the file.")
    sessions = ImportedSession(many=True, help_text="The sessions in the file.")
    damage_count = serializers.IntegerField(help_text="Number of unreadable lines.")
    damages = DamagedLine(many=True, help_text="The first 100 unreadable lines.")
