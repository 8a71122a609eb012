"""The shapes of bodies and answers: what is validated, and what the OpenAPI schema says."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from compaction.errors import PolicyError
from compaction.policy import Policy
from sessions.api.errors import InvalidRequest
from sessions.models.session import Format

MAX_TOKENS = 2_000_000_000


class Strict(serializers.Serializer):
    """Refuses fields that it does not know: a misspelt optional field is otherwise lost in silence."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and (unknown := sorted(data.keys() - self.fields.keys())):
            raise InvalidRequest(
                "unknown_field", f"`{unknown[0]}` is no field of this call", param=unknown[0]
            )
        return super().to_internal_value(data)


def validated(serializer: type[serializers.Serializer], data: dict[str, Any]) -> dict[str, Any]:
    """What the serializer makes of `data`. Raises `InvalidRequest` for the first field that is wrong."""
    bound = serializer(data=data)
    if bound.is_valid():
        return dict(bound.validated_data)
    param, message, code = _first_error(bound.errors)
    raise InvalidRequest("missing_field" if code == "required" else "invalid_field", message, param=param)


def _first_error(errors: Any, path: str = "") -> tuple[str, str, str]:
    if isinstance(errors, dict):
        name, inner = next(iter(errors.items()))
        return _first_error(inner, path if name == "non_field_errors" else f"{path}.{name}".lstrip("."))
    first = errors[0]
    if isinstance(first, dict | list):
        return _first_error(first, path)
    return path, f"`{path}`: {first}" if path else str(first), getattr(first, "code", "invalid")


class ErrorBody(serializers.Serializer):
    type = serializers.CharField()
    code = serializers.CharField()
    message = serializers.CharField()
    param = serializers.CharField(allow_null=True)


class Error(serializers.Serializer):
    error = ErrorBody()


class PlainText(serializers.CharField):
    """Text that Postgres' text type can hold: no NUL."""

    default_error_messages = {"nul": "must not contain a NUL character"}

    def to_internal_value(self, data: Any) -> str:
        text: str = super().to_internal_value(data)
        if not isinstance(data, str):
            self.fail("invalid")
        if "\0" in text:
            self.fail("nul")
        return text


class JsonObject(serializers.DictField):
    """An object of any JSON that JSONB can hold: no NUL in its texts."""

    default_error_messages = {"nul": "must not contain a NUL character"}

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


class BudgetField(Strict):
    input_tokens = serializers.IntegerField(min_value=1, max_value=MAX_TOKENS)


class PolicyField(JsonObject):
    """A preset's name under `preset`, and settings that differ from it."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        value = super().to_internal_value({"preset": data} if isinstance(data, str) else data)
        try:
            Policy.from_json(value)
        except PolicyError as error:
            raise serializers.ValidationError(str(error)) from None
        return value


class SessionCreate(Strict):
    id = PlainText(required=False, min_length=1, max_length=200, trim_whitespace=False)
    model = PlainText(required=False, allow_blank=True, max_length=200)
    format = serializers.ChoiceField(choices=Format.choices, required=False)
    agent = PlainText(required=False, allow_blank=True, max_length=100)
    title = PlainText(required=False, allow_blank=True, max_length=300)
    tags = serializers.ListField(child=PlainText(max_length=100), required=False, max_length=50)
    metadata = JsonObject(required=False)
    budget = BudgetField(required=False)
    policy = PolicyField(required=False)
    system = serializers.JSONField(required=False)
    tools = serializers.ListField(child=serializers.JSONField(), required=False)
    if_exists = serializers.ChoiceField(choices=["error", "return"], required=False, default="error")

    def validate_id(self, value: str) -> str:
        if "/" in value or any(ord(character) < 32 for character in value):
            raise serializers.ValidationError("must not contain `/` or control characters")
        return value


class TokensBilled(serializers.Serializer):
    uncached = serializers.IntegerField()
    cache_read = serializers.IntegerField()
    cache_write = serializers.IntegerField()
    output = serializers.IntegerField()


class PromptSize(serializers.Serializer):
    tokens = serializers.IntegerField(help_text="tokens of the prompt that the next fetch gets")
    raw_tokens = serializers.IntegerField(help_text="tokens it would have without compaction")
    budget = serializers.IntegerField(help_text="input tokens that it may take")
    occupancy = serializers.FloatField(help_text="tokens / budget, calibrated by reported usage")


class Session(serializers.Serializer):
    id = serializers.UUIDField()
    external_id = serializers.CharField()
    title = serializers.CharField()
    agent = serializers.CharField()
    model = serializers.CharField()
    format = serializers.ChoiceField(choices=Format.choices)
    origin = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    metadata = serializers.DictField()
    policy = serializers.DictField()
    parent = serializers.UUIDField(allow_null=True)
    created_at = serializers.DateTimeField()
    last_active_at = serializers.DateTimeField()
    turns = serializers.IntegerField()
    messages = serializers.IntegerField()
    compactions = serializers.IntegerField()
    prompt = PromptSize()
    last_prompt_tokens = serializers.IntegerField()
    peak_prompt_tokens = serializers.IntegerField()
    billed_tokens = TokensBilled()
    cost_microusd = serializers.IntegerField()
    unpriced_turns = serializers.IntegerField()


class SessionPage(serializers.Serializer):
    data = Session(many=True)
    next_cursor = serializers.CharField(allow_null=True)


class TurnPush(Strict):
    """One turn. `messages` are the provider's, in the session's format, stored as they are."""

    messages = serializers.ListField(child=serializers.DictField(), min_length=1)
    usage = serializers.DictField(required=False, help_text="as the provider reported it")
    model = PlainText(required=False, allow_blank=True, max_length=200)
    system = serializers.JSONField(required=False)
    tools = serializers.ListField(child=serializers.JSONField(), required=False)
    expected_turn = serializers.IntegerField(required=False, min_value=0, max_value=MAX_TOKENS)


class Positions(serializers.Serializer):
    first = serializers.IntegerField()
    last = serializers.IntegerField()


class Fired(serializers.Serializer):
    trigger = serializers.CharField()
    compaction = serializers.IntegerField(allow_null=True)
    state = serializers.CharField()
    reason = serializers.CharField()


class Redacted(serializers.Serializer):
    kind = serializers.CharField()
    count = serializers.IntegerField()


class TurnPushed(serializers.Serializer):
    turn = serializers.IntegerField()
    positions = Positions()
    prompt = PromptSize()
    cost_microusd = serializers.IntegerField(allow_null=True, help_text="null: unpriced, or no usage")
    fired = Fired(many=True)
    redacted = Redacted(many=True)


class Turn(serializers.Serializer):
    turn = serializers.IntegerField()
    at = serializers.DateTimeField()
    model = serializers.CharField()
    positions = Positions(allow_null=True)
    messages = serializers.ListField(child=serializers.DictField())
    prompt_estimate = serializers.IntegerField()
    prompt_reported = serializers.IntegerField(allow_null=True)
    prompt_served = serializers.IntegerField(allow_null=True)
    components = serializers.DictField(child=serializers.IntegerField())
    usage = TokensBilled(allow_null=True)
    cost_microusd = serializers.IntegerField(allow_null=True)


class TurnPage(serializers.Serializer):
    data = Turn(many=True)
    next_cursor = serializers.CharField(allow_null=True)


class ManifestEntry(serializers.Serializer):
    positions = Positions(help_text="the pushed messages that this one shows or stands for")
    role = serializers.CharField()
    rule = serializers.CharField(help_text="`verbatim`, or the strategy that made it look as it does")
    tokens_raw = serializers.IntegerField()
    tokens = serializers.IntegerField()


class Prompt(serializers.Serializer):
    format = serializers.ChoiceField(choices=Format.choices)
    turn = serializers.IntegerField(help_text="the prompt after this turn; -1 before the first")
    system = serializers.JSONField(required=False)
    messages = serializers.ListField(child=serializers.DictField())
    tools = serializers.ListField(child=serializers.DictField(), required=False)
    tokens = serializers.IntegerField()
    raw_tokens = serializers.IntegerField()
    budget = serializers.IntegerField()
    occupancy = serializers.FloatField()
    fits = serializers.BooleanField()
    reason = serializers.CharField(allow_null=True, help_text="why it does not fit")
    compactions = serializers.IntegerField()
    manifest = ManifestEntry(many=True, required=False)
