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

    For whole months, such as a quarter, that is as many months before, and for the first days of a month the
    same days of the month before. For several months from January 1, it is the same part of the year before.
    """
    end = span.first - timedelta(days=1)
    if span.first == span.last.replace(month=1, day=1) and span.last.month > 1:
        first = end.replace(month=1, day=1)
        return replace(span, first=first, last=_same_day(span.last, first.replace(month=span.last.month)))
    months = _months(span.last) - _months(span.first) + 1
    if span.first.day > 1 or (months > 1 and not _is_last_of_month(span.last)):
        return replace(span, first=span.first - timedelta(days=span.days), last=end)
    year, month = divmod(_months(span.first) - months, 12)
    return replace(span, first=date(year, month + 1, 1), last=_same_day(span.last, end.replace(day=1)))


def _same_day(day: date, month: date) -> date:
    """Return the same day of another month, given by its first day. The last day is that of the month."""
    days = monthrange(month.year, month.month)[1]
    return month.replace(day=days if _is_last_of_month(day) else min(day.day, days))


def _is_last_of_month(day: date) -> bool:
    return (day + timedelta(days=1)).day == 1


def _months(day: date) -> int:
    """Return the number of months from year 0 to the month of a day."""
    return day.year * 12 + day.month - 1


def buckets_of(span: Span, bucket: str) -> list[date]:
    """Return the first day of every bucket in the period, including empty ones."""
    return sorted({bucket_start(span.first + timedelta(days=day), bucket) for day in range(span.days)})


def bucket_start(day: date, bucket: str) -> date:
    """Return the first day of the bucket that contains a day."""
    if bucket == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if bucket == "month" else day
