"""The time zone of the viewer."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from django.http import HttpRequest

from sessions.selectors.days import is_zone


def zone_of(request: HttpRequest) -> ZoneInfo:
    """Return the viewer's time zone, which the browser sends in a cookie. Defaults to UTC."""
    name = request.GET.get("zone") or request.COOKIES.get("zone") or "UTC"
    return ZoneInfo(name if is_zone(name) else "UTC")
