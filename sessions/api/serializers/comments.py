"""Comments on turns."""

from __future__ import annotations

from rest_framework import serializers

from sessions.api.serializers.fields import NextCursor


class Comment(serializers.Serializer):
    id = serializers.IntegerField(help_text="Id of the comment.")
    turn = serializers.IntegerField(help_text="Index of the turn.")
    author = serializers.CharField(
        allow_null=True,
        help_text="Username of the author, followed by `(imported)` if the comment comes from an imported "
        "session. Null if the account was deleted.",
    )
    text = serializers.CharField(help_text="Plain text with line breaks. Secrets are redacted.")
    created_at = serializers.DateTimeField(help_text="When the comment was created.")
    edited_at = serializers.DateTimeField(
        allow_null=True, help_text="When the comment was last edited. Null if it was never edited."
    )


class CommentPage(serializers.Serializer):
    data = Comment(many=True, help_text="The comments.")
    next_cursor = NextCursor()
