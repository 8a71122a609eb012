"""Comments on turns."""

from __future__ import annotations

from rest_framework import serializers

from sessions.api.serializers.fields import NextCursor


class Comment(serializers.Serializer):
    id = serializers.IntegerField(help_text="The comment's id.")
    turn = serializers.IntegerField(help_text="The turn that it comments on.")
    author = serializers.CharField(
        allow_null=True, help_text="Username of the author. Null if the account was deleted."
    )
    text = serializers.CharField(help_text="Plain text with line breaks, without secrets.")
    created_at = serializers.DateTimeField(help_text="When it was written.")
    edited_at = serializers.DateTimeField(allow_null=True, help_text="When it was last edited, if ever.")


class CommentPage(serializers.Serializer):
    data = Comment(many=True, help_text="The comments.")
    next_cursor = NextCursor()
