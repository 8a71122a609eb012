"""Query parameters of several calls: choices, dialects, numbers and times."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive
from drf_spectacular.utils import OpenApiParameter

from compaction.dialects import DIALECTS
from sessions.api.endpoint import ApiCall
from sessions.api.errors import InvalidRequest
from sessions.api.serializers import MAX_TOKENS


def format_parameter(description: str) -> OpenApiParameter:
    """Return the OpenAPI description of the parameter `format`."""
    return OpenApiParameter("format", str, enum=list(DIALECTS), description=description)


def format_param(call: ApiCall) -> str | None:
    """Return the dialect that the request asks for, None if it does not. Raises `InvalidRequest`."""
    return choice_param(call, "format", DIALECTS)


def choice_param(call: ApiCall, name: str, choices: Collection[str]) -> str | None:
    """Return one of `choices`, None without the parameter. Raises `InvalidRequest`."""
    value = call.query.get(name)
    if value is None or value in choices:
        return value
    raise InvalidRequest("invalid_field", f"`{name}` must be one of: {', '.join(choices)}", param=name)


def int_param(call: ApiCall, name: str, *, default: int, least: int = 0, most: int = MAX_TOKENS) -> int:
    """Return a whole number. Raises `InvalidRequest` if it is not between `least` and `most`."""
    text = call.query.get(name)
    if text is None or text == "":
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 12 and least <= int(text) <= most):
        raise InvalidRequest(
            "invalid_field", f"`{name}` must be a whole number from {least:,} to {most:,}", param=name
        )
    return int(text)


def time_param(call: ApiCall, name: str) -> datetime | None:
    """Return a time, None without the parameter. Raises `InvalidRequest`."""
    text = call.query.get(name)
    if not text:
        return None
    time = read_time(text)
    if time is None:
        raise InvalidRequest(
            "invalid_field",
            f"`{name}` must be a time with a time zone, for example 2026-01-31T12:00:00Z",
            param=name,
        )
    return time


def read_time(text: str) -> datetime | None:
    """Parse a time with a time zone; None if the text is not one."""
    try:
        value = parse_datetime(text)
        # Converting to UTC rejects offsets that Postgres does not accept and dates out of range.
        return None if value is None or is_naive(value) else value.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
