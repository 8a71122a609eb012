"""Validation of request bodies, with one error message per invalid field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.validators import RegexValidator
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from sessions.api.errors import InvalidField, InvalidRequest, about, supported

#: Code of a `ValidationError` whose message is used as-is. `_requirement` replaces DRF's own messages.
RULE = "rule"

_SIMPLE: Mapping[type, str] = {
    serializers.BooleanField: "must be true or false.",
    serializers.UUIDField: "must be a UUID.",
    serializers.DateTimeField: "must be an ISO 8601 time such as 2026-01-31T12:00:00Z.",
}


#: The Python type of each kind of field's JSON value; float includes integers.
_TYPES: Mapping[type, type] = {
    serializers.BooleanField: bool,
    serializers.IntegerField: float,
    serializers.FloatField: float,
    serializers.MultipleChoiceField: list,
    serializers.ChoiceField: str,
    serializers.CharField: str,
    serializers.UUIDField: str,
    serializers.DateTimeField: str,
}

_WRONG_TYPE = ErrorDetail("has the wrong type", code="invalid")


def validated(serializer: type[serializers.Serializer], data: dict[str, Any]) -> dict[str, Any]:
    """Return the validated `data`. Raises `InvalidRequest` for the first invalid field."""
    bound = serializer(data=data)
    if (wrong := next(_mistyped(bound, data, ""), None)) is not None:
        path, field = wrong
        raise InvalidField(path, _message(path, field, _WRONG_TYPE))
    if bound.is_valid():
        return dict(bound.validated_data)
    path, field, detail = next(_errors(bound, bound.errors, ""))
    if detail.code == "required":
        raise InvalidRequest("missing_field", f"`{path}` is required.", param=path)
    raise InvalidField(path or None, _message(path, field, detail))


def _mistyped(field: Any, value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield path and field of each value with another JSON type than the field's.

    DRF converts 0 to false and "5" to 5, which the OpenAPI schema does not allow.
    """
    if isinstance(field, serializers.Serializer) and isinstance(value, dict):
        for name in value.keys() & field.fields.keys():
            yield from _mistyped(field.fields[name], value[name], f"{path}.{name}".lstrip("."))
    elif isinstance(field, serializers.ListField | serializers.ListSerializer) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _mistyped(field.child, item, f"{path}.{index}")
    elif value is not None:
        types = next((types for kind, types in _TYPES.items() if isinstance(field, kind)), None)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if types and not (is_number if types is float else isinstance(value, types)):
            yield path, field


def _errors(field: Any, errors: Any, path: str) -> Iterator[tuple[str, Any, ErrorDetail]]:
    """Yield path, field and error of each invalid field."""
    if isinstance(errors, dict):
        for name, inner in errors.items():
            if name == "non_field_errors":
                yield from _errors(field, inner, path)
            else:
                yield from _errors(_child(field, name), inner, f"{path}.{name}".lstrip("."))
        return
    for index, error in enumerate(errors):
        if isinstance(error, dict | list):
            yield from _errors(_child(field, index), error, f"{path}.{index}")
        else:
            yield path, field, error


def _child(field: Any, name: str | int) -> Any:
    fields = getattr(field, "fields", {})
    return fields[name] if name in fields else getattr(field, "child", None)


def _message(path: str, field: Any, detail: ErrorDetail) -> str:
    if detail.code == RULE:
        return about(path, detail) if path else str(detail)
    text = "must not be null." if detail.code == "null" else _requirement(field, detail) or str(detail)
    return f"`{path}` {text}" if path else f"The body {text}"


def _requirement(field: Any, detail: ErrorDetail) -> str:
    """Return the requirement for a field's value, "" for fields whose own error explains it."""
    if isinstance(field, serializers.MultipleChoiceField):
        return f"must be an array of one or more of: {_choices(field)}."
    if isinstance(field, serializers.ChoiceField):
        return f"must be one of: {_choices(field)}."
    if isinstance(field, serializers.IntegerField | serializers.FloatField):
        kind = "an integer" if isinstance(field, serializers.IntegerField) else "a number"
        return f"must be {kind}{_bounds(field.min_value, field.max_value)}."
    if isinstance(field, serializers.RegexField):
        return f"must match the regular expression {_pattern(field)}."
    if isinstance(field, serializers.CharField):
        minimum = field.min_length or (0 if field.allow_blank else 1)
        return f"must be a string{_length(minimum, field.max_length, 'characters')}{_no_nul(detail)}."
    if isinstance(field, serializers.ListField | serializers.ListSerializer):
        minimum = getattr(field, "min_length", None) or (0 if field.allow_empty else 1)
        return f"must be an array{_length(minimum, getattr(field, 'max_length', None), 'items')}."
    if isinstance(field, serializers.Serializer) and detail.code != "nul":
        return f"must be an object. {supported(field.fields)}"
    if isinstance(field, serializers.DictField | serializers.Serializer):
        return f"must be an object{_no_nul(detail)}."
    return next((text for kind, text in _SIMPLE.items() if isinstance(field, kind)), "")


def _pattern(field: Any) -> str:
    [regex] = [each.regex for each in field.validators if isinstance(each, RegexValidator)]
    return f"`{re.compile(regex).pattern}`"


def _no_nul(detail: ErrorDetail) -> str:
    return " without NUL characters" if detail.code == "nul" else ""


def _choices(field: Any) -> str:
    return ", ".join(str(choice) for choice in field.choices)


def _bounds(minimum: float | None, maximum: float | None) -> str:
    if minimum is None or maximum is None:
        return "" if minimum is None else f" of at least {minimum:,}"
    return f" between {minimum:,} and {maximum:,}"


def _length(minimum: int, maximum: int | None, unit: str) -> str:
    if maximum is None:
        return f" of at least {minimum:,} {unit}" if minimum else ""
    return f" of {minimum:,} to {maximum:,} {unit}" if minimum else f" of at most {maximum:,} {unit}"
