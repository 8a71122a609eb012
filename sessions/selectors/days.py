"""Periods of whole days, and their buckets: days, weeks or months."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

BUCKETS = ("day", "week", "month")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Whole days in a time zone, both ends included."""

    first: date
    last: date
    zone: ZoneInfo

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    def bounds(self) -> tuple[datetime, datetime]:
        """Return the start of the first day and the end of the last."""
        start, end = (
            datetime.combine(day, time(), tzinfo=self.zone)
            for day in (self.first, self.last + timedelta(days=1))
        )
        return start, end


def is_zone(name: str) -> bool:
    """Return whether this is the name of a time zone."""
    return name in _zones()


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def span_before(span: Span) -> Span:
    """Return the days directly before a period, as many as it has.

    For a month, that is the month before, and for its first days the same days of the month before. For
    several months from January 1, it is the same part of the year before.
    """
    end = span.first - timedelta(days=1)
    if span.first == span.last.replace(month=1, day=1) and span.last.month > 1:
        first = end.replace(month=1, day=1)
        return replace(span, first=first, last=_same_day(span.last, first.replace(month=span.last.month)))
    if span.first != span.last.replace(day=1):
        return replace(span, first=span.first - timedelta(days=span.days), last=end)
    first = end.replace(day=1)
    return replace(span, first=first, last=_same_day(span.last, first))


def _same_day(day: date, month: date) -> date:
    """Return the same day of another month, given by its first day. The last day is that of the month."""
    days = monthrange(month.year, month.month)[1]
    is_last = (day + timedelta(days=1)).day == 1
    return month.replace(day=days if is_last else min(day.day, days))


def buckets_of(span: Span, bucket: str) -> list[date]:
    """Return the first day of every bucket in the period, including empty ones."""
    return sorted({bucket_start(span.first + timedelta(days=day), bucket) for day in range(span.days)})


def bucket_start(day: date, bucket: str) -> date:
    """Return the first day of the bucket that contains a day."""
    if bucket == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if bucket == "month" else day
