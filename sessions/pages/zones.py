"""The time zone of the viewer."""

from __future__ import annotations

from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest


def zone_of(request: HttpRequest) -> ZoneInfo:
    """Return the viewer's time zone, which the browser sends in a cookie. Defaults to UTC."""
    name = request.GET.get("zone") or request.COOKIES.get("zone") or "UTC"
    return ZoneInfo(name if is_zone(name) else "UTC")


def is_zone(name: str) -> bool:
    """Return whether this is the name of a time zone."""
    return name in _zones()


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())
