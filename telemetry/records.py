"""Log records and spans, independent of their encoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Attributes = Mapping[str, Any]

_NANOS = 1_000_000_000

#: Maximum length of the id of a trace or span in hexadecimal: twice that of a regular trace id.
MAX_ID = 64

#: Times outside of this range are mistakes of a clock or of an encoder.
_EARLIEST, _LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """A log record. `name` is the name of its event. `at` is None if the record has no time."""

    name: str
    at: datetime | None
    attributes: Attributes
    resource: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanEvent:
    """An event of a span."""

    name: str
    attributes: Attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A finished span. IDs are in hexadecimal."""

    name: str
    trace_id: str
    span_id: str
    started_at: datetime | None
    ended_at: datetime | None
    attributes: Attributes
    resource: Attributes = field(default_factory=dict)
    events: Sequence[SpanEvent] = ()
    is_error: bool = False

    @property
    def duration_ms(self) -> int | None:
        if self.started_at is None or self.ended_at is None:
            return None
        return max(round((self.ended_at - self.started_at).total_seconds() * 1_000), 0)


def time_of(nanoseconds: int) -> datetime | None:
    """Return a time in nanoseconds since 1970, or None if it is missing or absurd."""
    try:
        return plausible(datetime.fromtimestamp(nanoseconds / _NANOS, UTC))
    except (OverflowError, ValueError, OSError):
        return None


def plausible(at: datetime) -> datetime | None:
    """Return the time, or None if it is absurd."""
    return at if _EARLIEST <= at <= _LATEST else None
