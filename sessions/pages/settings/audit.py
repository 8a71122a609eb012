"""The audit trail: what people and keys did to the project, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from accounts.models import AuditEvent
from sessions.pages.access import viewer_of
from sessions.pages.figures import money
from sessions.pages.settings.frame import settings_page
from sessions.selectors.filters import Cursor

_PAGE = 100


@require_safe
def project_audit(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = viewer_of(request, slug)
    rows = AuditEvent.objects.filter(project=viewer.project).select_related("user", "api_key")
    after = Cursor.decode(request.GET.get("after", ""))
    if after is not None:
        rows = rows.filter(Q(at__lt=after.at) | Q(at=after.at, pk__lt=after.id))
    found = list(rows.order_by("-at", "-pk")[: _PAGE + 1])
    last = found[_PAGE - 1] if len(found) > _PAGE else None
    context = {
        "events": [(event, _told(event.detail)) for event in found[:_PAGE]],
        "next": Cursor(at=last.at, id=UUID(str(last.pk))).encode() if last else "",
        "is_first": after is None,
    }
    return settings_page(request, viewer, "audit.html", context)


def _told(detail: Mapping[str, Any]) -> str:
    return "; ".join(_named(name, value, ": ") for name, value in detail.items())


def _named(name: str, value: Any, between: str) -> str:
    """A field with its value. Micro-dollars are told in dollars, as the pages do everywhere."""
    if name in _DOLLARS:
        name, value = _DOLLARS[name], _dollars(value)
    return f"{name}{between}{_value(value)}"


#: Fields in micro-dollars, and what they are called in dollars.
_DOLLARS = {
    "limit_microusd": "limit",
    "uncached": "uncached",
    "cache_read": "cache read",
    "cache_write": "cache write",
    "output": "output",
}


def _dollars(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _dollars(of) for name, of in value.items()}
    return money(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _value(value: Any) -> str:
    if isinstance(value, Mapping) and set(value) == {"from", "to"}:
        return f"{_value(value['from'])} → {_value(value['to'])}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "none"
    if isinstance(value, Mapping) and value:
        return " ".join(_named(name, of, " ") for name, of in value.items())
    return str(value) if value not in ("", None, {}) else "none"
