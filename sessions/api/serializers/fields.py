"""Fields and shapes that several serializers share."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from compaction.dialects import dialect_choices
from compaction.errors import PolicyError
from compaction.policy import Policy
from sessions.api.errors import unknown_field
from sessions.api.serializers.validation import RULE
from sessions.selectors.token_budgets import MAX_BUDGET

MAX_TOKENS = 2_000_000_000

COMPACTION_COUNT = (
    "Number of compactions that changed the prompt, including reverted ones. Compactions without effect "
    "(state `skipped`) are not counted."
)


class Strict(serializers.Serializer):
    """Unknown fields are rejected."""

    # Otherwise, a misspelled optional field would be ignored silently.
    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and (unknown := sorted(data.keys() - self.fields.keys())):
            raise unknown_field(unknown[0], self.fields.keys(), within=self._path())
        return super().to_internal_value(data)

    def _path(self) -> str:
        """Return the path of this object in the body, "" for the body itself."""
        names, field = [], self
        while field is not None:
            names.append(field.field_name)
            field = field.parent
        return ".".join(filter(None, reversed(names)))


class ErrorBody(serializers.Serializer):
    type = serializers.CharField(help_text="Error category; one per status, such as `invalid_request`.")
    code = serializers.CharField(help_text="Stable error code for programs, such as `invalid_field`.")
    message = serializers.CharField(help_text="Explanation for humans. May change.")
    param = serializers.CharField(
        allow_null=True, help_text="The field, parameter or header that caused the error, if any."
    )


class Error(serializers.Serializer):
    error = ErrorBody(help_text="The error.")


class PlainText(serializers.CharField):
    """A string without NUL, which Postgres' text type cannot store."""

    default_error_messages = {"nul": "must not contain NUL characters"}

    def to_internal_value(self, data: Any) -> str:
        text: str = super().to_internal_value(data)
        if not isinstance(data, str):
            self.fail("invalid")
        if "\0" in text:
            self.fail("nul")
        return text


class CallId(PlainText):
    """An id that the provider gave to a call."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_blank=True, allow_null=True, max_length=200, **kwargs)


class JsonObject(serializers.DictField):
    """A JSON object without NUL in its strings, which JSONB cannot store."""

    default_error_messages = {"nul": "must not contain NUL characters"}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        value: dict[str, Any] = super().to_internal_value(data)
        if _has_nul(value):
            self.fail("nul")
        return value


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_has_nul(key) or _has_nul(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_has_nul, value))


class FormatField(serializers.ChoiceField):
    """The name of a dialect."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=dialect_choices(), **options)


class PolicyField(JsonObject):
    """A policy: the name of a preset, or an object with `preset` and the settings that differ from it."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        value = super().to_internal_value({"preset": data} if isinstance(data, str) else data)
        try:
            Policy.from_json(value)
        except PolicyError as error:
            raise serializers.ValidationError({error.field: [error.reason]}, code=RULE) from None
        return value


class TokensBilled(serializers.Serializer):
    uncached = serializers.IntegerField(help_text="Input tokens billed at the full price.")
    cache_read = serializers.IntegerField(help_text="Input tokens read from the provider's prompt cache.")
    cache_write = serializers.IntegerField(help_text="Input tokens written to the prompt cache.")
    output = serializers.IntegerField(help_text="Output tokens.")


class LatencyReported(Strict):
    """How long the model call took, as you measured it. Both fields are optional."""

    time_to_first_token_ms = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=86_400_000,
        help_text="Milliseconds from the request to the first token.",
    )
    duration_ms = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=86_400_000,
        help_text="Milliseconds from the request to the end of the response.",
    )


class Latency(serializers.Serializer):
    """How long the model call took, as the client measured it."""

    time_to_first_token_ms = serializers.IntegerField(
        allow_null=True, help_text="Milliseconds from the request to the first token."
    )
    duration_ms = serializers.IntegerField(
        allow_null=True, help_text="Milliseconds from the request to the end of the response."
    )


class PromptSize(serializers.Serializer):
    tokens = serializers.IntegerField(help_text="Estimated tokens of the prompt.")
    raw_tokens = serializers.IntegerField(
        help_text="Estimated tokens that the prompt would have without compaction."
    )
    budget = serializers.IntegerField(help_text="Maximum input tokens of the prompt.")
    occupancy = serializers.FloatField(
        help_text="Share of the budget in use: `tokens` as the provider counts them (see the session's "
        "`calibration`), divided by `budget`."
    )


class PromptBody(PromptSize):
    """What a request to the provider contains, and whether it fits the budget."""

    format = FormatField(help_text="Format of the messages.")
    system = serializers.JSONField(
        required=False, help_text="System prompt, if the format has a separate field for it."
    )
    messages = serializers.ListField(child=serializers.DictField(), help_text="Messages to send.")
    tools = serializers.ListField(
        child=serializers.DictField(), required=False, help_text="Tool definitions to send."
    )
    fits = serializers.BooleanField(help_text="Whether the prompt fits the budget.")
    reason = serializers.CharField(allow_null=True, help_text="Why the prompt does not fit the budget.")


class CalibrationSize(serializers.Serializer):
    """Provider tokens = `factor` x estimated tokens + `overhead`."""

    factor = serializers.FloatField(help_text="Provider tokens per estimated token.")
    overhead = serializers.IntegerField(
        help_text="Provider tokens of every prompt that the session does not contain: a system prompt or "
        "tools that the agent sends but does not push."
    )
    reports = serializers.IntegerField(
        help_text="Number of the session's turns from which it was learned. 0: the values come from other "
        "sessions of the project, or from the model's family."
    )


class BudgetField(Strict):
    input_tokens = serializers.IntegerField(
        min_value=1, max_value=MAX_BUDGET, help_text="Maximum input tokens of a prompt."
    )


class NextCursor(serializers.CharField):
    """The cursor of the next page of a list."""

    def __init__(self) -> None:
        super().__init__(
            allow_null=True, help_text="Pass as `cursor` to get the next page. Null on the last page."
        )


class Positions(serializers.Serializer):
    first = serializers.IntegerField(help_text="Position of the first message, from 0.")
    last = serializers.IntegerField(help_text="Position of the last message, inclusive.")
