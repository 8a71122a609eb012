"""The time zone of the viewer."""

from __future__ import annotations

from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest


def zone_of(request: HttpRequest) -> ZoneInfo:
    """Return the viewer's time zone, which the browser sends in a cookie. Defaults to UTC."""
    name = request.GET.get("zone") or request.COOKIES.get("zone") or "UTC"
    return ZoneInfo(name if name in _zones() else "UTC")


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())
