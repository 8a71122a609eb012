"""Sessions."""

from __future__ import annotations

from rest_framework import serializers

from sessions.api.serializers.fields import (
    COMPACTION_COUNT,
    BudgetField,
    CalibrationSize,
    FormatField,
    JsonObject,
    NextCursor,
    PlainText,
    PolicyField,
    PromptSize,
    Strict,
    TokensBilled,
)
from sessions.api.serializers.validation import RULE


class SessionCreate(Strict):
    id = PlainText(
        required=False,
        min_length=1,
        max_length=200,
        trim_whitespace=False,
        help_text="Your own id for the session, stored as `external_id`. Defaults to a generated one.",
    )
    model = PlainText(
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="Model that the agent calls. Determines the context window and prices.",
    )
    format = FormatField(
        required=False,
        help_text="Format of the messages and of the prompt. Defaults to detecting it from the tool "
        "definitions and the messages.",
    )
    agent = PlainText(
        required=False,
        allow_blank=True,
        max_length=100,
        help_text="Name of the agent, for filters and totals.",
    )
    title = PlainText(required=False, allow_blank=True, max_length=300, help_text="Title in the dashboard.")
    tags = serializers.ListField(
        child=PlainText(max_length=100),
        required=False,
        max_length=50,
        help_text="Tags for filters and totals.",
    )
    metadata = JsonObject(required=False, help_text="Any JSON object.")
    parent = PlainText(
        required=False,
        min_length=1,
        max_length=200,
        trim_whitespace=False,
        help_text="The session that starts this one as a sub-agent: its `id` or `external_id`.",
    )
    budget = BudgetField(
        required=False, help_text="Defaults to the model's context window minus room for the output."
    )
    policy = PolicyField(
        required=False,
        help_text="When and how to compact: a preset's name, or an object with `preset` and overrides. "
        "See docs/reference/policies.md.",
    )
    system = serializers.JSONField(
        required=False, help_text="System prompt: a string, content blocks, or Gemini's `systemInstruction`."
    )
    tools = serializers.ListField(
        child=serializers.JSONField(), required=False, help_text="Tool definitions in the provider's format."
    )
    if_exists = serializers.ChoiceField(
        choices=["error", "return"],
        required=False,
        default="error",
        help_text="What to do if a session with this `id` exists.",
    )

    def validate_id(self, value: str) -> str:
        if "/" in value or any(ord(character) < 32 for character in value):
            raise serializers.ValidationError("must not contain `/` or control characters", code=RULE)
        if value in {".", ".."}:  # HTTP clients resolve these path segments
            raise serializers.ValidationError("must not be `.` or `..`", code=RULE)
        return value


class ExportedLine(serializers.Serializer):
    """One line of a session's export. The fields depend on the type; those of messages are listed."""

    type = serializers.ChoiceField(
        choices=["contextapp-session", "system", "turn", "message", "comment"],
        help_text="What the line contains.",
    )
    session = serializers.CharField(help_text="The session's external id.")
    turn = serializers.IntegerField(required=False, help_text="Index of the turn, from 0.")
    position = serializers.IntegerField(required=False, help_text="Position of the message, from 0.")
    at = serializers.DateTimeField(required=False, help_text="When the turn was pushed.")
    tokens = serializers.IntegerField(required=False, help_text="Estimated tokens of the message.")
    message = serializers.DictField(required=False, help_text="The message as pushed.")


class SessionChange(Strict):
    title = PlainText(required=False, allow_blank=True, max_length=300, help_text="The new title.")
    tags = serializers.ListField(
        child=PlainText(max_length=100), required=False, max_length=50, help_text="The new tags."
    )
    policy = PolicyField(
        required=False,
        help_text="The new policy: a preset's name, or an object with `preset` and overrides. "
        "Without `preset`, it overrides the project's default policy.",
    )
    budget = BudgetField(
        required=False, allow_null=True, help_text="The new budget. `null` restores the default."
    )


class Session(serializers.Serializer):
    id = serializers.UUIDField(help_text="The session's id.")
    external_id = serializers.CharField(help_text="Your own id, or a generated one.")
    title = serializers.CharField(help_text="Title in the dashboard.")
    agent = serializers.CharField(help_text="Name of the agent.")
    model = serializers.CharField(help_text="The model that the agent calls.")
    format = FormatField(
        allow_null=True, help_text="Format in which prompts are served. `null` until it is detected."
    )
    origin = serializers.CharField(
        help_text="`api`, `gateway`, `telemetry`, or the log format of an imported session."
    )
    tags = serializers.ListField(child=serializers.CharField(), help_text="Tags.")
    metadata = serializers.DictField(help_text="Your own metadata.")
    policy = serializers.DictField(help_text="The compaction policy, as given.")
    parent = serializers.UUIDField(allow_null=True, help_text="The session that started this sub-agent.")
    created_at = serializers.DateTimeField(help_text="When the session was created.")
    last_active_at = serializers.DateTimeField(help_text="When the last turn was pushed.")
    turns = serializers.IntegerField(help_text="Number of turns.")
    messages = serializers.IntegerField(help_text="Number of messages.")
    compactions = serializers.IntegerField(help_text=COMPACTION_COUNT)
    prompt = PromptSize(help_text="Size of the current prompt.")
    context_window = serializers.IntegerField(
        allow_null=True,
        help_text="The model's documented context window in tokens, if known. The provider may reject "
        "prompts of a larger `budget`.",
    )
    calibration = CalibrationSize(help_text="How the provider counts, learned from reported usage.")
    last_prompt_tokens = serializers.IntegerField(help_text="Prompt tokens of the last call.")
    peak_prompt_tokens = serializers.IntegerField(help_text="Prompt tokens of the largest call.")
    billed_tokens = TokensBilled(help_text="Billed tokens of all calls.")
    cost_microusd = serializers.IntegerField(help_text="Cost of all calls in millionths of a dollar.")
    unpriced_turns = serializers.IntegerField(help_text="Turns of a model without a known price.")


class SessionCreated(Session):
    offers = serializers.IntegerField(
        help_text="Number of shared facts to import; see `GET sessions/{id}/memory/offers/`."
    )


class SessionPage(serializers.Serializer):
    data = Session(many=True, help_text="The sessions.")
    next_cursor = NextCursor()
