"""Periods of whole days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo


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
