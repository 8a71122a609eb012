"""The stored sums of a period: whole days in UTC, and the quarter-hours before and after them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta

from sessions.models import DailyUsage, UsageRollup
from sessions.selectors.days import Span

_DAY, _MICROSECOND = timedelta(days=1), timedelta(microseconds=1)


def usage_rows(summed: Sequence[str], *, projects: str = "= %(project)s") -> str:
    """Return the SQL of the rows with these sums. Its parameters are those of `whole_days` and the period.

    `projects` is the SQL condition of the project's id.
    """
    return " UNION ALL ".join((
        _read(summed, projects, UsageRollup._meta.db_table, "start", "first_day"),
        _read(summed, projects, DailyUsage._meta.db_table, "first_day", "last_day"),
        _read(summed, projects, UsageRollup._meta.db_table, "last_day", "end"),
    ))  # fmt: skip


def _read(summed: Sequence[str], projects: str, table: str, start: str, end: str) -> str:
    columns = ", ".join(("session_id", "at", "model", *summed))
    condition = f"project_id {projects} AND at >= %({start})s AND at < %({end})s"
    return f"SELECT {columns} FROM {table} WHERE {condition}"  # noqa: S608  all are names in this package


def whole_days(span: Span, bucket: str) -> dict[str, datetime]:
    """Return the start of the first day whose sums are read, and the end of the last.

    Buckets of days in a time zone other than UTC consist of quarter-hours only.
    """
    start, end = span.bounds()
    if bucket and span.zone.key != "UTC":
        return {"first_day": end, "last_day": end}
    first = min(datetime.combine(start.astimezone(UTC) - _MICROSECOND, time(), UTC) + _DAY, end)
    last = datetime.combine(end.astimezone(UTC), time(), UTC)
    return {"first_day": first, "last_day": max(first, last)}
