"""Imports of log files."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from sessions.api.serializers.fields import NextCursor, Strict
from sessions.api.serializers.turns import Redacted
from sessions.models import ImportJob as Job
from sessions.models import ImportJobSession

#: Skipped sessions are reported as damage.
SESSION_STATES = [choice for choice in ImportJobSession.State.choices if choice[0] != "skipped"]


@extend_schema_field(OpenApiTypes.BINARY)  # the default for a file is its URL
class UploadField(serializers.FileField):
    pass


class ImportUpload(serializers.Serializer):
    file = UploadField(help_text="One uncompressed log file.")


class ImportedSession(serializers.Serializer):
    id = serializers.UUIDField(
        allow_null=True, help_text="The session, or null after a conflict or if it was deleted."
    )
    external_id = serializers.CharField(help_text="The session's id in the log.")
    state = serializers.ChoiceField(
        choices=SESSION_STATES,
        help_text="What the import did. `partial`: only the first turns are imported so far.",
    )
    turns = serializers.IntegerField(help_text="Number of turns added.")
    messages = serializers.IntegerField(help_text="Number of messages added.")
    reason = serializers.CharField(allow_null=True, help_text="Reason of a conflict.")
    redacted = Redacted(many=True, help_text="Secrets that were redacted.")


class DamagedLine(serializers.Serializer):
    line = serializers.IntegerField(help_text="Line number, from 1.")
    reason = serializers.CharField(help_text="Why the line could not be read.")


class ImportProgress(serializers.Serializer):
    sessions = serializers.IntegerField(help_text="Number of sessions imported so far.")
    sessions_total = serializers.IntegerField(help_text="Sessions in the log; 0 until it has been read.")
    messages = serializers.IntegerField(help_text="Number of messages of the log processed so far.")
    messages_total = serializers.IntegerField(help_text="Messages in the log; 0 until it has been read.")


class ImportFailure(serializers.Serializer):
    code = serializers.CharField(help_text="Stable error code, such as `unknown_format`.")
    message = serializers.CharField(help_text="Explanation for humans. May change.")


class ImportJob(serializers.Serializer):
    id = serializers.UUIDField(help_text="The import's id.")
    state = serializers.ChoiceField(
        choices=Job.State.choices,
        help_text="The import has ended if it is neither pending nor running.",
    )
    name = serializers.CharField(help_text="Name of the file.")
    format = serializers.CharField(
        allow_null=True, help_text="The given or detected log format; null until the log has been read."
    )
    size = serializers.IntegerField(help_text="Size of the file in bytes.")
    progress = ImportProgress(help_text="What has been imported so far.")
    error = ImportFailure(allow_null=True, help_text="Why the import failed.")
    created_at = serializers.DateTimeField(help_text="When the file was uploaded.")
    finished_at = serializers.DateTimeField(allow_null=True, help_text="When the import ended.")


class ImportJobDetail(ImportJob):
    sessions = ImportedSession(
        many=True, help_text="The first 100 sessions. `imports/{id}/sessions/` lists all of them."
    )
    damage_count = serializers.IntegerField(help_text="Number of unreadable lines.")
    damages = DamagedLine(many=True, help_text="The first 100 unreadable lines.")


class ImportJobList(serializers.Serializer):
    data = ImportJob(many=True, help_text="The imports, newest first.")
    next_cursor = NextCursor()


class ImportedSessionList(serializers.Serializer):
    data = ImportedSession(many=True, help_text="The sessions, in the order of the log.")
    next_cursor = NextCursor()


class ImportChange(Strict):
    state = serializers.ChoiceField(choices=["cancelled"], help_text="`cancelled` ends the import.")
