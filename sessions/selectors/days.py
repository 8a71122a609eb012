"""Periods of whole days, and their buckets: days, weeks or months."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

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


def buckets_of(span: Span, bucket: str) -> list[date]:
    """Return the first day of every bucket in the period, including empty ones."""
    return sorted({bucket_start(span.first + timedelta(days=day), bucket) for day in range(span.days)})


def bucket_start(day: date, bucket: str) -> date:
    """Return the first day of the bucket that contains a day."""
    if bucket == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if bucket == "month" else day
