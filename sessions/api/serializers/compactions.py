"""Compactions, their edits and recaps."""

from __future__ import annotations

from rest_framework import serializers

from sessions.api.serializers.fields import NextCursor, PlainText, PolicyField, Positions, Strict


class CompactRequest(Strict):
    instructions = PlainText(
        required=False,
        allow_blank=True,
        max_length=4_000,
        help_text="What the summary must keep. Used only by a summarizer model.",
    )
    policy = PolicyField(
        required=False, help_text="Policy for this compaction. Defaults to the session's policy."
    )
    preview = serializers.BooleanField(
        required=False, help_text="Return what a compaction would do without applying it."
    )


class ProviderSummary(Strict):
    before = serializers.IntegerField(
        min_value=1, max_value=2**31 - 1, help_text="`before` of the prompt's `summary_request`."
    )
    content = serializers.ListField(
        child=serializers.DictField(), max_length=10, help_text="`content` of the response, unchanged."
    )
    stop_reason = PlainText(
        required=False, allow_null=True, max_length=100, help_text="`stop_reason` of the response."
    )
    model = PlainText(required=False, max_length=200, help_text="`model` of the response.")
    usage = serializers.DictField(required=False, help_text="`usage` of the response, unchanged.")


class RecapText(Strict):
    text = PlainText(max_length=100_000, help_text="The new recap, in the format of the existing one.")


class Compaction(serializers.Serializer):
    number = serializers.IntegerField(
        allow_null=True, help_text="Number within the session, from 1. Null for a preview."
    )
    state = serializers.CharField(
        help_text="`pending`, `running`, `done`, `skipped` (no effect), `failed`, `reverted` or `preview`."
    )
    trigger = serializers.CharField(
        help_text="What started it, such as `soft`, `hard`, `turns`, `idle`, `user` or `edit`."
    )
    engine = serializers.CharField(help_text="`own`, or `provider` if the provider compacted the prompt.")
    reason = serializers.CharField(allow_blank=True, help_text="Why it ran or had no effect.")
    instructions = serializers.CharField(allow_blank=True, help_text="Instructions for the summary.")
    turn = serializers.IntegerField(help_text="The first turn whose prompt contains the edits.")
    tokens_before = serializers.IntegerField(
        allow_null=True, help_text="Estimated prompt tokens before the compaction."
    )
    tokens_after = serializers.IntegerField(
        allow_null=True, help_text="Estimated prompt tokens after the compaction."
    )
    record = serializers.DictField(help_text="Statistics of the compaction; see docs/concepts/compaction.md.")
    cost_microusd = serializers.IntegerField(
        allow_null=True, help_text="Cost of the summary in millionths of a dollar. Null if unknown."
    )
    created_at = serializers.DateTimeField(allow_null=True, help_text="When it was requested or triggered.")
    finished_at = serializers.DateTimeField(allow_null=True, help_text="When it ended.")


class CompactionPage(serializers.Serializer):
    data = Compaction(many=True, help_text="The compactions.")
    next_cursor = NextCursor()


class ExportedCompaction(Compaction):
    """One line of the export."""

    session = serializers.UUIDField(help_text="The session's id.")
    external_id = serializers.CharField(help_text="The session's external id.")


class CompactionEdit(serializers.Serializer):
    strategy = serializers.CharField(help_text="The strategy that made the edit, such as `collapse`.")
    op = serializers.CharField(
        help_text="`replace` or `strip` one part of a message, `evict` messages, `shed` or "
        "`restore` tools or memory, or put the working `memory` into the prompt."
    )
    positions = Positions(help_text="The messages that the edit changes.")
    part = serializers.IntegerField(allow_null=True, help_text="Index of the changed part in its message.")
    text = serializers.CharField(allow_blank=True, help_text="What the prompt contains instead.")
    handle = serializers.CharField(allow_null=True, help_text="Id that retrieves the original content.")
    reason = serializers.CharField(allow_blank=True, help_text="Why the edit was made.")
    tokens_before = serializers.IntegerField(help_text="Estimated tokens before the edit.")
    tokens_after = serializers.IntegerField(help_text="Estimated tokens after the edit.")


class CompactionDetail(Compaction):
    recap = serializers.CharField(allow_null=True, help_text="The text that replaces evicted messages.")
    edits = CompactionEdit(many=True, help_text="The edits, in order.")
