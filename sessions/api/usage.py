"""`usage/`: token and cost totals by day, model, agent and tag."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db import DataError
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter

from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import InvalidField, InvalidRequest
from sessions.api.schema import operation
from sessions.api.serializers import usage as serializers
from sessions.selectors.days import Span, is_zone
from sessions.selectors.usage import GROUPS, UsageTotals, usage_sums

_MAX_DAYS = 366
_DEFAULT_DAYS = 30
_MAX_ROWS = 10_000

#: Dates outside this range are typos; dates near the limits of the calendar would overflow.
_FIRST_DAY, _LAST_DAY = date(2000, 1, 1), date(2999, 12, 31)


class Usage(Endpoint):
    @operation(
        "usage_get",
        "Retrieve usage",
        serializers.Usage,
        parameters=[
            OpenApiParameter(
                "from", date, description=f"First day. Defaults to {_DEFAULT_DAYS - 1} days before `to`."
            ),
            OpenApiParameter("to", date, description="Last day, inclusive. Defaults to today."),
            OpenApiParameter(
                "time_zone",
                str,
                description="IANA time zone of the days, such as `Europe/Berlin`. Defaults to UTC.",
            ),
            OpenApiParameter(
                "group_by",
                str,
                description=f"Comma-separated list of {', '.join(GROUPS)}. Defaults to day. A session with "
                "several tags counts toward each of them.",
            ),
        ],
    )
    def get(self, call: ApiCall) -> HttpResponse:
        """Returns turns, billed tokens and cost of the project, in total and by group."""
        span, groups = _span(call), _groups(call)
        try:
            total, rows = usage_sums(
                project_id=call.principal.project_id, span=span, groups=groups, limit=_MAX_ROWS + 1
            )
        except DataError:  # Python supports the time zone, but this Postgres does not
            raise _invalid_zone() from None
        if len(rows) > _MAX_ROWS:
            raise InvalidField(
                "group_by", f"More than {_MAX_ROWS:,} rows. Choose a shorter period or fewer groups."
            )
        return json_response(
            {
                "from": span.first,
                "to": span.last,
                "time_zone": span.zone.key,
                "group_by": groups,
                "total": _totals_json(total),
                "data": [{**row.group, **_totals_json(row)} for row in rows],
            }
        )


def _totals_json(totals: UsageTotals) -> Mapping[str, Any]:
    return {
        "turns": totals.turns,
        "unpriced_turns": totals.unpriced_turns,
        "billed_tokens": {
            "uncached": totals.uncached,
            "cache_read": totals.cache_read,
            "cache_write": totals.cache_write,
            "output": totals.output,
        },
        "cost_microusd": totals.cost_microusd,
    }


def _span(call: ApiCall) -> Span:
    name = call.query.get("time_zone") or "UTC"
    if not is_zone(name):
        raise _invalid_zone()
    zone = ZoneInfo(name)
    last = _day(call, "to") or datetime.now(UTC).astimezone(zone).date()
    first = _day(call, "from") or last - timedelta(days=_DEFAULT_DAYS - 1)
    span = Span(first=first, last=last, zone=zone)
    if first > last:
        end = f"`to` ({last})" if "to" in call.query else f"`to`, which defaults to today ({last})"
        raise InvalidField("from", f"`from` ({first}) must not be after {end}.")
    if span.days > _MAX_DAYS:
        raise InvalidField("from", f"The period must have at most {_MAX_DAYS} days, not {span.days:,}.")
    return span


def _day(call: ApiCall, name: str) -> date | None:
    text = call.query.get(name)
    if text is None:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or not _FIRST_DAY <= day <= _LAST_DAY:
        raise InvalidField(name, f"`{name}` must be a date from {_FIRST_DAY} to {_LAST_DAY}.")
    return day


def _groups(call: ApiCall) -> list[str]:
    groups = (call.query.get("group_by") or "day").split(",")
    if len(set(groups)) < len(groups) or not set(groups) <= set(GROUPS):
        raise InvalidField("group_by", f"`group_by` must be a comma-separated list of: {', '.join(GROUPS)}.")
    return groups


def _invalid_zone() -> InvalidRequest:
    return InvalidField("time_zone", "`time_zone` must be an IANA time zone such as Europe/Berlin.")
