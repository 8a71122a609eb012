"""The audit log: changes to the project by users, API keys and the server, newest first."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from accounts.models import AuditEvent
from sessions.pages.access import viewer_of
from sessions.pages.settings.audit_text import describe_details, describe_event
from sessions.pages.settings.common import settings_page
from sessions.selectors.lists.filters import Cursor

_PAGE_SIZE = 100


@require_safe
def project_audit(request: HttpRequest, slug: str) -> HttpResponse:
    viewer = viewer_of(request, slug)
    rows = AuditEvent.objects.filter(project=viewer.project).select_related("user", "api_key")
    after = Cursor.decode(request.GET.get("after", ""))
    if after is not None:
        rows = rows.filter(Q(at__lt=after.at) | Q(at=after.at, pk__lt=after.id))
    found = list(rows.order_by("-at", "-pk")[: _PAGE_SIZE + 1])
    events = found[:_PAGE_SIZE]
    last = events[-1] if len(found) > _PAGE_SIZE else None
    context = {
        "events": [(event, describe_event(event), describe_details(event)) for event in events],
        "next": Cursor(at=last.at, id=UUID(str(last.pk))).encode() if last else "",
        "is_first": after is None,
    }
    return settings_page(request, viewer, "audit.html", context)
