"""Content retrieved by handle, search results, pins and agent tools."""

from __future__ import annotations

from rest_framework import serializers

from sessions.api.serializers.fields import NextCursor, PlainText, Strict
from sessions.selectors.search.visibility import Visibility


class Match(serializers.Serializer):
    line = serializers.IntegerField(help_text="Line number, from 1.")
    text = serializers.CharField(allow_blank=True, help_text="The line.")
    match = serializers.BooleanField(help_text="Whether the line matches; false for a line of context.")


class Content(serializers.Serializer):
    """Content, or the requested part of it: `text`, or with `grep` the matching lines."""

    handle = serializers.CharField(help_text="The requested handle.")
    position = serializers.IntegerField(help_text="Position of the message that has the content.")
    turn = serializers.IntegerField(help_text="Turn of the message.")
    tool = serializers.CharField(allow_blank=True, help_text="Tool that produced the content, if any.")
    rule = serializers.CharField(help_text="Strategy that removed the content from the prompt.")
    lines = serializers.IntegerField(help_text="Number of lines of the whole content.")
    characters = serializers.IntegerField(help_text="Number of characters of the whole content.")
    unit = serializers.CharField(required=False, help_text="Unit of the offsets: `lines` or `characters`.")
    offset = serializers.IntegerField(required=False, help_text="Offset at which `text` begins.")
    text = serializers.CharField(required=False, allow_blank=True, help_text="The requested part.")
    next_offset = serializers.IntegerField(
        required=False, allow_null=True, help_text="Offset of the next part, or null at the end."
    )
    matches = Match(many=True, required=False, help_text="With `grep`: matching lines with context.")
    match_count = serializers.IntegerField(required=False, help_text="With `grep`: number of matches.")


class Pinned(serializers.Serializer):
    position = serializers.IntegerField(help_text="Position of the message.")
    pinned = serializers.BooleanField(help_text="Whether the message is pinned.")


class MessageChange(serializers.Serializer):
    effect = serializers.ChoiceField(
        choices=[Visibility.SHORTENED.value, Visibility.EVICTED.value],
        help_text="Whether the compaction shortened the message or removed it from the prompt.",
    )
    compaction = serializers.IntegerField(
        allow_null=True,
        help_text="Number of the compaction. Null if the client removed the message.",
    )
    turn = serializers.IntegerField(help_text="Prompts after this turn contain the change.")
    strategy = serializers.CharField(help_text="Strategy of the edit, for example `recap` or `client`.")
    reason = serializers.CharField(allow_blank=True, help_text="Reason of the edit.")


class SearchResult(serializers.Serializer):
    position = serializers.IntegerField(help_text="Position of the message.")
    turn = serializers.IntegerField(help_text="Turn of the message.")
    at = serializers.DateTimeField(help_text="Time of the turn.")
    role = serializers.CharField(help_text="Role of the message; `tool` if it consists of tool results.")
    tool = serializers.CharField(
        allow_blank=True, help_text="Tool that the message calls or whose result it is, if any."
    )
    is_error = serializers.BooleanField(help_text="Whether a tool reported an error.")
    snippet = serializers.CharField(allow_blank=True, help_text="Part of the message that matches best.")
    marks = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField(), min_length=2, max_length=2),
        help_text="Start and end of each match in `snippet`, in characters.",
    )
    score = serializers.FloatField(help_text="How well the message matches, compared with other results.")
    in_prompt = serializers.ChoiceField(
        choices=[each.value for each in Visibility],
        help_text="Whether the current prompt shows the message.",
    )
    handle = serializers.CharField(
        allow_null=True, help_text="Handle that retrieves what the prompt no longer shows, if there is one."
    )
    changes = MessageChange(
        many=True,
        help_text="The edits that shortened or removed the message in the prompt, oldest first.",
    )


class SearchPage(serializers.Serializer):
    data = SearchResult(many=True, help_text="The matching messages, best first.")
    next_cursor = NextCursor()


class FoundSession(serializers.Serializer):
    id = serializers.UUIDField(help_text="The session's id.")
    external_id = serializers.CharField(help_text="The id that the client chose.")
    title = serializers.CharField(allow_blank=True, help_text="The session's title.")


class ProjectSearchResult(SearchResult):
    session = FoundSession(help_text="The session of the message.")


class ProjectSearchPage(serializers.Serializer):
    data = ProjectSearchResult(many=True, help_text="The matching messages, best first.")
    next_cursor = NextCursor()


class ToolCall(Strict):
    name = PlainText(max_length=100, help_text="Name of the tool.")
    arguments = serializers.JSONField(
        required=False, help_text="Arguments as an object, or as a string of JSON."
    )


class ToolResult(serializers.Serializer):
    content = serializers.CharField(allow_blank=True, help_text="Text to return to the model.")
    is_error = serializers.BooleanField(help_text="Whether `content` is an error message.")


class Tools(serializers.Serializer):
    format = serializers.CharField(help_text="The provider format of the definitions.")
    tools = serializers.ListField(
        child=serializers.DictField(), help_text="Tool definitions to add to the model's tools."
    )
