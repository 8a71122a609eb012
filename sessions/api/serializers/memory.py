"""Working memory, its revisions and their differences."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers

from compaction.memory import MAX_FILES, Churn, Motion, Via
from sessions.api.serializers.fields import PlainText, Strict
from sessions.models import MemoryRevision, SharedFact
from sessions.selectors.facts import DOUBTS
from sessions.selectors.summarizers import MODEL_NAME

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


class MemoryItem(serializers.Serializer):
    field = serializers.CharField()
    text = serializers.CharField()
    author = serializers.ChoiceField(choices=MemoryRevision.Author.choices)
    via = serializers.ChoiceField(choices=[via.value for via in Via], help_text="the way it came in")
    turn = serializers.IntegerField(help_text="the turn that it came from")
    message = serializers.IntegerField(allow_null=True, help_text="the message's position, where it is known")
    stale = serializers.CharField(allow_null=True, help_text="why it no longer holds")


class MemoryShown(serializers.Serializer):
    revision = serializers.IntegerField(help_text="0: nothing was ever written")
    memory = MemoryFields()
    tokens = serializers.IntegerField()
    turn = serializers.IntegerField(allow_null=True, help_text="the session's last turn at that time")
    author = serializers.ChoiceField(choices=MemoryRevision.Author.choices, allow_null=True)
    reason = serializers.CharField(allow_blank=True)
    at = serializers.DateTimeField(allow_null=True)
    warning = serializers.CharField(allow_null=True, help_text="it is larger than is asked for")
    items = MemoryItem(many=True, help_text="every item with where it comes from")


class MemoryPage(serializers.Serializer):
    data = MemoryShown(many=True)
    next_cursor = serializers.CharField(allow_null=True)


class MemoryChange(serializers.Serializer):
    field = serializers.CharField()
    added = serializers.ListField(child=serializers.CharField())
    removed = serializers.ListField(child=serializers.CharField())
    reworded = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="of those, the pairs before and after",
    )
    resolved = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="of the removed, those that were settled"
    )


class MemoryMotion(serializers.Serializer):
    field = serializers.CharField()
    motion = serializers.ChoiceField(choices=[motion.value for motion in Motion])
    changes = serializers.IntegerField(help_text="revisions that changed the field")
    losses = serializers.IntegerField(help_text="those that took something from it")
    unmoved = serializers.IntegerField(help_text="revisions since the last change")


class MemoryChurn(serializers.Serializer):
    verdict = serializers.ChoiceField(choices=[verdict.value for verdict in Churn])
    share = serializers.FloatField(help_text="of the changes, those that threw something away")
    fields = MemoryMotion(many=True)


class MemoryStale(serializers.Serializer):
    field = serializers.CharField()
    text = serializers.CharField()
    reason = serializers.CharField()


class MemoryConfirmed(serializers.Serializer):
    field = serializers.CharField()
    text = serializers.CharField()


class MemoryStep(serializers.Serializer):
    revision = serializers.IntegerField()
    turn = serializers.IntegerField()
    author = serializers.ChoiceField(choices=MemoryRevision.Author.choices)
    reason = serializers.CharField(allow_blank=True)
    at = serializers.DateTimeField()
    tokens = serializers.IntegerField()
    changes = MemoryChange(many=True)
    stale = MemoryStale(many=True, help_text="items that went stale with this revision")
    confirmed = MemoryConfirmed(many=True, help_text="items that were stale before it, and hold again")


class MemoryTimeline(serializers.Serializer):
    data = MemoryStep(many=True)
    next_cursor = serializers.CharField(allow_null=True)


class MemoryField(Strict):
    """A field of a project's own."""

    name = serializers.RegexField(r"^[a-z][a-z0-9_]{0,39}$")
    single = serializers.BooleanField(required=False, default=False, help_text="one text, else a list")
    max_items = serializers.IntegerField(required=False, allow_null=True, min_value=1, max_value=100)
    description = PlainText(required=False, allow_blank=True, max_length=200)


class MemorySettings(Strict):
    """How a project uses working memory."""

    upkeep = serializers.BooleanField(required=False, help_text="kept current from what tools did")
    model = serializers.RegexField(
        MODEL_NAME,
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="the model that reads new turns beside upkeep; empty: none, and nothing is paid for",
    )
    model_missing = serializers.CharField(
        read_only=True, allow_null=True, help_text="why the model that is named does not read"
    )
    proposals = serializers.BooleanField(
        required=False, help_text="facts are proposed by themselves once a session has come to rest"
    )
    fields = MemoryField(many=True, required=False, help_text="fields beyond the usual ones")


class MemoryReadingState(serializers.Serializer):
    model = serializers.CharField(allow_blank=True, help_text="empty: none is set")
    missing = serializers.CharField(allow_null=True, help_text="why no model reads; null where one does")
    turn = serializers.IntegerField(help_text="the next turn that it reads")
    read_at = serializers.DateTimeField(allow_null=True)
    told = serializers.CharField(allow_null=True, help_text="why the last try did not get through")
    next_try_at = serializers.DateTimeField(
        allow_null=True, help_text="until then nobody asks it; null: nothing is under way, and nothing waits"
    )
    readings = serializers.IntegerField(help_text="how often it was asked, in vain or not")
    unpriced_readings = serializers.IntegerField()
    cost_microusd = serializers.IntegerField(help_text="1,000,000 are a dollar; without the unpriced ones")


class MemoryUpkeep(serializers.Serializer):
    """How far upkeep has come with a session."""

    upkeep = serializers.BooleanField(help_text="whether the project has it on")
    turn = serializers.IntegerField(help_text="the next turn whose tool results it reads")
    turns = serializers.IntegerField(help_text="the session's turns")
    reading = MemoryReadingState(help_text="the part by a model")


MemoryDiff = inline_serializer(  # `from` is no name for an attribute
    "MemoryDiff",
    {
        "from": serializers.IntegerField(),
        "to": serializers.IntegerField(),
        "changes": MemoryChange(many=True),
        "churn": MemoryChurn(help_text=f"over the newest {CHURN_REVISIONS} revisions of the span"),
    },
)


class MemoryDoubt(serializers.Serializer):
    session = serializers.UUIDField()
    why = serializers.CharField(help_text="it went stale there, or somebody took it out")


class MemoryFact(serializers.Serializer):
    """Something worth knowing in other sessions. It is carried into one only when somebody takes it."""

    id = serializers.UUIDField()
    agent = serializers.CharField(allow_blank=True, help_text="empty: for all agents")
    field = serializers.CharField()
    text = serializers.CharField()
    state = serializers.ChoiceField(choices=SharedFact.State.choices)
    session = serializers.UUIDField(allow_null=True, help_text="whose memory it comes from")
    revision = serializers.IntegerField(allow_null=True)
    seen_in = serializers.IntegerField(help_text="how many sessions' memories had it")
    seen_at = serializers.DateTimeField(help_text="when it was last seen in another session")
    created_at = serializers.DateTimeField()
    confirmed_at = serializers.DateTimeField(help_text="when it was last said again, or decided on")
    expires_at = serializers.DateTimeField(allow_null=True)
    doubts = MemoryDoubt(many=True, help_text=f"sessions whose memory no longer has it, the newest {DOUBTS}")


class MemoryFactList(serializers.Serializer):
    data = MemoryFact(many=True)


class MemoryFactPage(serializers.Serializer):
    data = MemoryFact(many=True)
    next_cursor = serializers.CharField(allow_null=True)


class MemoryFactDecision(Strict):
    state = serializers.ChoiceField(choices=SharedFact.State.choices, required=False)
    text = PlainText(required=False, max_length=1_000)
    expires_at = serializers.DateTimeField(required=False, help_text="else 90 days after it is accepted")


class _ProposedItem(Strict):
    field = PlainText(max_length=40)
    text = PlainText(max_length=1_000)


class MemoryProposal(Strict):
    items = _ProposedItem(many=True, required=False, help_text="else all that may hold elsewhere")


class MemoryTake(Strict):
    facts = serializers.ListField(
        child=serializers.UUIDField(),
        required=False,
        max_length=200,
        help_text="ids; else all that are offered",
    )
