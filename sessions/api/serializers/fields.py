"""What the serializers share: strictness, texts and objects that the database can hold, common shapes."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from compaction.dialects import dialect_choices
from compaction.errors import PolicyError
from compaction.policy import Policy
from sessions.api.errors import InvalidRequest

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


class FormatField(serializers.ChoiceField):
    """The name of a dialect."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=dialect_choices(), **options)


class PolicyField(JsonObject):
    """A preset's name under `preset`, and settings that differ from it."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        value = super().to_internal_value({"preset": data} if isinstance(data, str) else data)
        try:
            Policy.from_json(value)
        except PolicyError as error:
            raise serializers.ValidationError(str(error)) from None
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


class Positions(serializers.Serializer):
    first = serializers.IntegerField()
    last = serializers.IntegerField()
