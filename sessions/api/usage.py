"""`usage/`: cost and tokens by day, model, agent and tag."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.db import DataError
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter

from accounts.models import Scope
from sessions.api import serializers
from sessions.api.endpoint import ApiCall, Endpoint, json_response
from sessions.api.errors import InvalidRequest
from sessions.api.schema import error_responses, operation
from sessions.selectors.usage import GROUPS, Span, Used, usage_sums

_LONGEST_DAYS = 366
_DEFAULT_DAYS = 30
_MOST_ROWS = 10_000

#: Days outside are typing errors, and the ends of the calendar overflow.
_FIRST_DAY, _LAST_DAY = date(2000, 1, 1), date(2999, 12, 31)


class Usage(Endpoint):
    @operation(
        operation_id="usage_get",
        summary="Sum cost and tokens by day, model, agent or tag",
        parameters=[
            OpenApiParameter("from", date, description=f"first day; else {_DEFAULT_DAYS} days up to `to`"),
            OpenApiParameter("to", date, description="last day, included; else today"),
            OpenApiParameter("time_zone", str, description="where days begin, as `Europe/Berlin`; else UTC"),
            OpenApiParameter(
                "group_by",
                str,
                description=f"one or more of {', '.join(GROUPS)}, by commas; else day. A session with "
                "several tags counts for each of them",
            ),
        ],
        responses={200: serializers.Usage, **error_responses(400)},
    )
    def get(self, call: ApiCall) -> HttpResponse:
        span, groups = _span(call), _groups(call)
        try:
            total, rows = usage_sums(
                project_id=call.principal.project_id, span=span, groups=groups, limit=_MOST_ROWS + 1
            )
        except DataError:  # a zone that Python knows and this Postgres does not
            raise _wrong_zone() from None
        if len(rows) > _MOST_ROWS:
            raise InvalidRequest(
                "invalid_field",
                f"more than {_MOST_ROWS:,} rows; ask for a shorter span or fewer groups",
                param="group_by",
            )
        return json_response(
            {
                "from": span.first,
                "to": span.last,
                "time_zone": span.zone.key,
                "group_by": groups,
                "total": _used_json(total),
                "data": [{**row.group, **_used_json(row)} for row in rows],
            }
        )

    scopes = {"GET": Scope.READ}


def _used_json(used: Used) -> Mapping[str, Any]:
    return {
        "turns": used.turns,
        "unpriced_turns": used.unpriced_turns,
        "billed_tokens": {
            "uncached": used.uncached,
            "cache_read": used.cache_read,
            "cache_write": used.cache_write,
            "output": used.output,
        },
        "cost_microusd": used.cost_microusd,
    }


def _span(call: ApiCall) -> Span:
    name = call.query.get("time_zone") or "UTC"
    if name not in _zones():
        raise _wrong_zone()
    zone = ZoneInfo(name)
    last = _day(call, "to") or datetime.now(UTC).astimezone(zone).date()
    first = _day(call, "from") or last - timedelta(days=_DEFAULT_DAYS - 1)
    span = Span(first=first, last=last, zone=zone)
    if not 1 <= span.days <= _LONGEST_DAYS:
        raise InvalidRequest(
            "invalid_field", f"a span has 1 to {_LONGEST_DAYS} days, this one {span.days:,}", param="from"
        )
    return span


def _day(call: ApiCall, name: str) -> date | None:
    text = call.query.get(name)
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or not _FIRST_DAY <= day <= _LAST_DAY:
        raise InvalidRequest("invalid_field", f"`{name}` must be a day, as 2026-01-31", param=name)
    return day


def _groups(call: ApiCall) -> list[str]:
    groups = (call.query.get("group_by") or "day").split(",")
    if len(set(groups)) < len(groups) or not set(groups) <= set(GROUPS):
        raise InvalidRequest(
            "invalid_field", f"`group_by` takes {', '.join(GROUPS)}, by commas", param="group_by"
        )
    return groups


def _wrong_zone() -> InvalidRequest:
    return InvalidRequest(
        "invalid_field",
        "`time_zone` must be a name of the IANA database, as Europe/Berlin",
        param="time_zone",
    )


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())
