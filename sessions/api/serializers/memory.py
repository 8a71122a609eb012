"""Working memory, its revisions and their differences."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers

from compaction.memory import MAX_FILES, Churn
from sessions.api.serializers.fields import Strict
from sessions.models import MemoryRevision

#: The churn verdict looks at so many revisions at most.
CHURN_REVISIONS = 100


def _texts(**options: Any) -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(), required=False, **options)


class MemoryFields(Strict):
    """Working memory. In a patch a field replaces the stored one, and null clears it."""

    task = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    important_files = _texts(allow_null=True, max_length=MAX_FILES)
    decisions = _texts(allow_null=True)
    open_questions = _texts(allow_null=True)
    next = serializers.CharField(required=False, allow_null=True, allow_blank=True)
    blockers = _texts(allow_null=True)
    recent_edits = _texts(allow_null=True, help_text="the diff of the last edits, not their description")
    tried = _texts(allow_null=True, help_text="what was tried, and why it did not work")


class MemoryShown(serializers.Serializer):
    revision = serializers.IntegerField(help_text="0: nothing was ever written")
    memory = MemoryFields()
    tokens = serializers.IntegerField()
    turn = serializers.IntegerField(allow_null=True, help_text="the session's last turn at that time")
    author = serializers.ChoiceField(choices=MemoryRevision.Author.choices, allow_null=True)
    reason = serializers.CharField(allow_blank=True)
    at = serializers.DateTimeField(allow_null=True)
    warning = serializers.CharField(allow_null=True, help_text="it is larger than is asked for")


class MemoryPage(serializers.Serializer):
    data = MemoryShown(many=True)
    next_cursor = serializers.CharField(allow_null=True)


class MemoryChange(serializers.Serializer):
    field = serializers.CharField()
    added = serializers.ListField(child=serializers.CharField())
    removed = serializers.ListField(child=serializers.CharField())


class MemoryChurn(serializers.Serializer):
    verdict = serializers.ChoiceField(choices=[verdict.value for verdict in Churn])
    share = serializers.FloatField(help_text="of the changes, those that threw something away")


MemoryDiff = inline_serializer(  # `from` is no name for an attribute
    "MemoryDiff",
    {
        "from": serializers.IntegerField(),
        "to": serializers.IntegerField(),
        "changes": MemoryChange(many=True),
        "churn": MemoryChurn(help_text=f"over the newest {CHURN_REVISIONS} revisions of the span"),
    },
)
