"""Numbers and times of an address's query."""

from __future__ import annotations

from datetime import UTC, datetime

from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive

from sessions.api.endpoint import ApiCall
from sessions.api.errors import InvalidRequest
from sessions.api.serializers import MAX_TOKENS


def int_param(call: ApiCall, name: str, *, default: int, least: int = 0, most: int = MAX_TOKENS) -> int:
    """A whole number from the query. Raises `InvalidRequest` outside its bounds."""
    text = call.query.get(name)
    if text is None or text == "":
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 12 and least <= int(text) <= most):
        raise InvalidRequest(
            "invalid_field", f"`{name}` must be a whole number from {least:,} to {most:,}", param=name
        )
    return int(text)


def time_param(call: ApiCall, name: str) -> datetime | None:
    """A time from the query, None without one. Raises `InvalidRequest`."""
    text = call.query.get(name)
    if not text:
        return None
    time = read_time(text)
    if time is None:
        raise InvalidRequest(
            "invalid_field", f"`{name}` must be a time with its zone, as 2026-01-31T12:00:00Z", param=name
        )
    return time


def read_time(text: str) -> datetime | None:
    """The time that a text names with its zone, None where it names none."""
    try:
        value = parse_datetime(text)
        # Offsets that Postgres refuses, and times that leave the calendar, end here.
        return None if value is None or is_naive(value) else value.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
