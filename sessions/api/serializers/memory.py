"""Working memory: contents, revisions, changes, settings and shared facts."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers

from compaction.memory.diffs import Churn, Motion
from compaction.memory.origins import Via
from compaction.memory.schema import MAX_FILES
from sessions.api.serializers.fields import NextCursor, PlainText, Strict
from sessions.models import MemoryRevision as StoredRevision
from sessions.models import SharedFact
from sessions.selectors.memory.facts import DOUBTS
from sessions.selectors.summarizers import MODEL_NAME

#: Maximum number of revisions considered for the churn verdict.
CHURN_REVISIONS = 100


def _strings(**options: Any) -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(), required=False, **options)


class MemoryFields(Strict):
    """The fields of a working memory. Projects can add custom fields."""

    task = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, help_text="What the user wants."
    )
    important_files = _strings(
        allow_null=True, max_length=MAX_FILES, help_text="Paths of the files that matter most."
    )
    decisions = _strings(allow_null=True, help_text="Decisions and their reasons.")
    open_questions = _strings(allow_null=True, help_text="Unanswered questions.")
    next = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, help_text="The next step."
    )
    blockers = _strings(allow_null=True, help_text="What prevents progress.")
    recent_edits = _strings(allow_null=True, help_text="The most recent edits as diffs, not as descriptions.")
    tried = _strings(allow_null=True, help_text="Failed attempts and why they failed.")


class MemoryItem(serializers.Serializer):
    field = serializers.CharField(help_text="Field that contains the item.")
    text = serializers.CharField(help_text="The item.")
    author = serializers.ChoiceField(choices=StoredRevision.Author.choices, help_text="Who wrote it.")
    via = serializers.ChoiceField(choices=[via.value for via in Via], help_text="How it was added.")
    turn = serializers.IntegerField(help_text="Turn that the item comes from.")
    message = serializers.IntegerField(
        allow_null=True, help_text="Position of the message that the item comes from, if known."
    )
    stale = serializers.CharField(
        allow_null=True, help_text="Why the item is no longer true. Null if it is current."
    )


class MemoryRevision(serializers.Serializer):
    revision = serializers.IntegerField(help_text="Number of the revision; 0 if nothing was written yet.")
    memory = MemoryFields(help_text="The contents.")
    tokens = serializers.IntegerField(help_text="Estimated tokens.")
    turn = serializers.IntegerField(
        allow_null=True, help_text="The session's last turn when the revision was written."
    )
    author = serializers.ChoiceField(
        choices=StoredRevision.Author.choices, allow_null=True, help_text="Who wrote the revision."
    )
    reason = serializers.CharField(allow_blank=True, help_text="Reason for the change.")
    at = serializers.DateTimeField(allow_null=True, help_text="When the revision was written.")
    warning = serializers.CharField(
        allow_null=True, help_text="Warning that the memory is too large, if it is."
    )
    items = MemoryItem(many=True, help_text="Each item with its origin.")


class MemoryPage(serializers.Serializer):
    data = MemoryRevision(many=True, help_text="The revisions.")
    next_cursor = NextCursor()


class MemoryChange(serializers.Serializer):
    field = serializers.CharField(help_text="The changed field.")
    added = serializers.ListField(child=serializers.CharField(), help_text="Items that were added.")
    removed = serializers.ListField(child=serializers.CharField(), help_text="Items that were removed.")
    reworded = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="Pairs of a removed item and the added item that rewords it.",
    )
    resolved = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="Removed items that were resolved, such as answered questions.",
    )


class MemoryMotion(serializers.Serializer):
    field = serializers.CharField(help_text="The field.")
    motion = serializers.ChoiceField(
        choices=[motion.value for motion in Motion], help_text="How the field changes over time."
    )
    changes = serializers.IntegerField(help_text="Revisions that changed the field.")
    losses = serializers.IntegerField(help_text="Revisions that removed something from the field.")
    unmoved = serializers.IntegerField(help_text="Revisions since the last change.")


class MemoryChurn(serializers.Serializer):
    verdict = serializers.ChoiceField(
        choices=[verdict.value for verdict in Churn],
        help_text="`churning` if the same fields are rewritten again and again.",
    )
    share = serializers.FloatField(help_text="Share of changes that discarded something.")
    fields = MemoryMotion(many=True, help_text="Changes by field.")


class MemoryStale(serializers.Serializer):
    field = serializers.CharField(help_text="Field that contains the item.")
    text = serializers.CharField(help_text="The item.")
    reason = serializers.CharField(help_text="Why it is no longer true.")


class MemoryConfirmed(serializers.Serializer):
    field = serializers.CharField(help_text="Field that contains the item.")
    text = serializers.CharField(help_text="The item.")


class MemoryStep(serializers.Serializer):
    revision = serializers.IntegerField(help_text="Number of the revision.")
    turn = serializers.IntegerField(help_text="The session's last turn when the revision was written.")
    author = serializers.ChoiceField(
        choices=StoredRevision.Author.choices, help_text="Who wrote the revision."
    )
    reason = serializers.CharField(allow_blank=True, help_text="Reason for the change.")
    at = serializers.DateTimeField(help_text="When the revision was written.")
    tokens = serializers.IntegerField(help_text="Estimated tokens of the whole memory.")
    changes = MemoryChange(many=True, help_text="Changes by field.")
    stale = MemoryStale(many=True, help_text="Items that this revision marked as stale.")
    confirmed = MemoryConfirmed(
        many=True, help_text="Stale items that this revision marked as current again."
    )


class MemoryTimeline(serializers.Serializer):
    data = MemoryStep(many=True, help_text="The changes of each revision.")
    next_cursor = NextCursor()


class MemoryField(Strict):
    """A custom memory field of a project."""

    name = serializers.RegexField(
        r"^[a-z][a-z0-9_]{0,39}$", help_text="Lowercase letters, digits and underscores."
    )
    single = serializers.BooleanField(
        required=False, default=False, help_text="Whether the field is one string instead of a list."
    )
    max_items = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=100, help_text="Maximum number of items."
    )
    description = PlainText(
        required=False, allow_blank=True, max_length=200, help_text="What the field contains."
    )


class MemorySettings(Strict):
    """Memory settings of a project."""

    upkeep = serializers.BooleanField(
        required=False, help_text="Whether working memories are updated automatically from tool results."
    )
    model = serializers.RegexField(
        MODEL_NAME,
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="Model that also extracts memory items from new turns. Empty to call no model.",
    )
    model_missing = serializers.CharField(
        read_only=True, allow_null=True, help_text="Why the configured model cannot be used, if it cannot."
    )
    proposals = serializers.BooleanField(
        required=False,
        help_text="Whether facts are proposed for sharing automatically when a session becomes idle.",
    )
    fields = MemoryField(
        many=True, required=False, help_text="Custom fields, in addition to the built-in ones."
    )


class MemoryReadingState(serializers.Serializer):
    model = serializers.CharField(allow_blank=True, help_text="The configured model. Empty if there is none.")
    missing = serializers.CharField(allow_null=True, help_text="Why no model is used. Null if one is.")
    turn = serializers.IntegerField(help_text="The next turn to process.")
    read_at = serializers.DateTimeField(allow_null=True, help_text="When the model last succeeded.")
    told = serializers.CharField(allow_null=True, help_text="Error of the last attempt, if it failed.")
    next_try_at = serializers.DateTimeField(
        allow_null=True, help_text="When the next attempt may begin. Null if none is running or waiting."
    )
    readings = serializers.IntegerField(help_text="Number of model calls, including failed ones.")
    unpriced_readings = serializers.IntegerField(help_text="Calls of a model without a known price.")
    cost_microusd = serializers.IntegerField(
        help_text="Cost in millionths of a dollar, without unpriced calls."
    )


class MemoryUpkeep(serializers.Serializer):
    """Progress of automatic memory updates for a session."""

    upkeep = serializers.BooleanField(help_text="Whether automatic updates are on for the project.")
    turn = serializers.IntegerField(help_text="The next turn whose tool results will be processed.")
    turns = serializers.IntegerField(help_text="Number of turns of the session.")
    reading = MemoryReadingState(help_text="Memory extraction by a model.")


MemoryDiff = inline_serializer(  # `from` cannot be the name of an attribute
    "MemoryDiff",
    {
        "from": serializers.IntegerField(help_text="The older revision."),
        "to": serializers.IntegerField(help_text="The newer revision."),
        "changes": MemoryChange(many=True, help_text="Changes by field."),
        "churn": MemoryChurn(help_text=f"Based on the newest {CHURN_REVISIONS} revisions in between."),
    },
)


class MemoryDoubt(serializers.Serializer):
    session = serializers.UUIDField(help_text="The session.")
    why = serializers.CharField(help_text="Whether the fact became stale there or was removed.")


class MemoryFact(serializers.Serializer):
    """A fact shared between sessions. A session has it only after importing it."""

    id = serializers.UUIDField(help_text="The fact's id.")
    agent = serializers.CharField(
        allow_blank=True, help_text="Agent that the fact applies to. Empty for all agents."
    )
    field = serializers.CharField(help_text="Memory field of the fact.")
    text = serializers.CharField(help_text="The fact.")
    state = serializers.ChoiceField(choices=SharedFact.State.choices, help_text="Review state.")
    session = serializers.UUIDField(allow_null=True, help_text="Session from whose memory the fact comes.")
    revision = serializers.IntegerField(allow_null=True, help_text="Revision of that memory.")
    seen_in = serializers.IntegerField(help_text="Number of sessions whose memory contained the fact.")
    seen_at = serializers.DateTimeField(help_text="When another session's memory last contained it.")
    created_at = serializers.DateTimeField(help_text="When the fact was proposed.")
    confirmed_at = serializers.DateTimeField(help_text="When the fact was last observed or reviewed.")
    expires_at = serializers.DateTimeField(allow_null=True, help_text="When it is no longer offered.")
    doubts = MemoryDoubt(
        many=True, help_text=f"The newest {DOUBTS} sessions whose memory no longer contains the fact."
    )


class MemoryFactList(serializers.Serializer):
    data = MemoryFact(many=True, help_text="The facts.")


class MemoryFactPage(serializers.Serializer):
    data = MemoryFact(many=True, help_text="The facts.")
    next_cursor = NextCursor()


class MemoryFactDecision(Strict):
    state = serializers.ChoiceField(
        choices=SharedFact.State.choices, required=False, help_text="New review state."
    )
    text = PlainText(required=False, max_length=1_000, help_text="New wording.")
    expires_at = serializers.DateTimeField(required=False, help_text="Defaults to 90 days after acceptance.")


class ProposedItem(Strict):
    field = PlainText(max_length=40, help_text="Field of the working memory.")
    text = PlainText(max_length=1_000, help_text="The item, exactly as in the memory.")


class MemoryProposal(Strict):
    items = ProposedItem(
        many=True,
        required=False,
        help_text="Items to propose. Defaults to all items that can apply to other sessions.",
    )


class MemoryImport(Strict):
    facts = serializers.ListField(
        child=serializers.UUIDField(),
        required=False,
        max_length=200,
        help_text="Ids of facts to import. Defaults to all offered facts.",
    )
