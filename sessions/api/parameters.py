"""Parsing of query parameters."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive
from drf_spectacular.utils import OpenApiParameter

from compaction.dialects import DIALECTS
from sessions.api.endpoint import ApiCall
from sessions.api.errors import InvalidField
from sessions.api.serializers.fields import MAX_TOKENS


def idempotency_parameter(description: str) -> OpenApiParameter:
    """Describe the header `Idempotency-Key`."""
    return OpenApiParameter(
        "Idempotency-Key",
        {"type": "string", "minLength": 1, "maxLength": 200, "pattern": r"^[!-~]([ -~]*[!-~])?$"},
        OpenApiParameter.HEADER,
        description=f"A unique string of up to 200 characters. {description}",
    )


def format_parameter(description: str) -> OpenApiParameter:
    """Return the OpenAPI description of the parameter `format`."""
    return OpenApiParameter("format", str, enum=list(DIALECTS), description=description)


def format_param(call: ApiCall) -> str | None:
    """Return the requested dialect, or None without the parameter. Raises `InvalidRequest`."""
    return choice_param(call, "format", DIALECTS)


def choice_param(call: ApiCall, name: str, choices: Collection[str]) -> str | None:
    """Return one of `choices`, or None without the parameter. Raises `InvalidRequest`."""
    value = call.query.get(name)
    if value is None or value in choices:
        return value
    raise InvalidField(name, f"`{name}` must be one of: {', '.join(choices)}.")


def int_parameter(
    name: str, description: str, *, minimum: int = 0, maximum: int = MAX_TOKENS
) -> OpenApiParameter:
    """Return the OpenAPI description of an integer in the query, which `int_param` reads."""
    return OpenApiParameter(
        name, {"type": "integer", "minimum": minimum, "maximum": maximum}, description=description
    )


def int_param(call: ApiCall, name: str, *, default: int, minimum: int = 0, maximum: int = MAX_TOKENS) -> int:
    """Return an integer from the query. Raises `InvalidRequest` if it is out of range."""
    text = call.query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 12 and minimum <= int(text) <= maximum):
        raise InvalidField(name, f"`{name}` must be an integer between {minimum:,} and {maximum:,}.")
    return int(text)


def time_param(call: ApiCall, name: str) -> datetime | None:
    """Return a time from the query, or None without one. Raises `InvalidRequest`."""
    text = call.query.get(name)
    if text is None:
        return None
    time = parse_time(text)
    if time is None:
        raise InvalidField(
            name, f"`{name}` must be an ISO 8601 time with a UTC offset, such as 2026-01-31T12:00:00Z."
        )
    return time


def parse_time(text: str) -> datetime | None:
    """Parse an ISO 8601 time with a UTC offset. Return None if `text` is not one."""
    try:
        value = parse_datetime(text)
        # The conversion rejects offsets that Postgres does not accept, and times out of range.
        return None if value is None or is_naive(value) else value.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
