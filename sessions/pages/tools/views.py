"""What the tools of a session or a project cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from sessions.models import AgentSession
from sessions.pages.access import Viewer, page_or_fragment, viewer_of, with_session
from sessions.pages.links import Link
from sessions.pages.tabs import session_context
from sessions.selectors.tools.definitions import project_definitions, session_definitions
from sessions.selectors.tools.usage import (
    ORDERS,
    ToolRow,
    is_counting,
    project_tools,
    repeated_files,
    session_tools,
)

#: The periods of the project page in days.
_PERIODS = {"7": "7 days", "30": "30 days", "90": "90 days", "all": "All time"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Link):
    """A sortable column: a link that sorts by it, its tooltip and its unit."""

    meaning: str = ""
    unit: str = ""


#: The sortable columns by order: label, tooltip and unit.
_COLUMNS = {
    "calls": ("Calls", "", ""),
    "tokens": ("Output tokens", "Tokens of all outputs, estimated, with their share", ""),
    "average": ("Average", "Tokens of an average output", "tokens"),
    "largest": ("Largest", "Tokens of the largest output", "tokens"),
    "errors": ("Errors", "Outputs that report an error", ""),
    "repeats": (
        "Repeated reads",
        "Outputs that show a file that the session had read before, with their tokens",
        "",
    ),
    "cost": (
        "Cost",
        "Part of the calls’ input cost that outputs of this tool cause, in proportion to their tokens",
        "",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTotals:
    """The sums over all tools. `most_tokens` and `most_microusd` are the largest of a single tool."""

    calls: int
    outputs: int
    output_tokens: int
    call_tokens: int
    errors: int
    repeats: int
    repeat_tokens: int
    cost_microusd: int
    most_tokens: int
    most_microusd: int


@require_safe
@with_session
def session_tools_page(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """List the tools of a session. Query parameter: `sort`, one of `ORDERS`."""
    order = _order(request)
    rows = session_tools(session=session, order=order)
    definitions = session_definitions(session=session, called={row.tool for row in rows})
    context = session_context(viewer, session, "session_tools") | {
        "rows": rows,
        "total": _total(rows),
        "columns": _columns(order, {}),
        "order": order,
        "files": repeated_files(session=session),
        "definitions": definitions,
        "definition_tokens": sum(each.tokens for each in definitions),
        "tool_definitions": session.context_components.get("tools", 0),
        "is_counting": is_counting(session=session),
    }
    return page_or_fragment(request, "tools/session.html", "tools/_session.html", context)


@require_safe
def project_tools_page(request: HttpRequest, slug: str) -> HttpResponse:
    """List the tools of a project. Query parameters: `sort` and `days` (one of `_PERIODS`)."""
    viewer = viewer_of(request, slug)
    order, days = _order(request), request.GET.get("days", "30")
    days = days if days in _PERIODS else "30"
    first = None if days == "all" else timezone.now().date() - timedelta(days=int(days) - 1)
    rows = project_tools(project=viewer.project, first=first, order=order)
    context = {
        "viewer": viewer,
        "rows": rows,
        "total": _total(rows),
        "columns": _columns(order, {"days": days} if days != "30" else {}),
        "order": order,
        "periods": [
            Link(
                label=label,
                address=_address({"days": name}, order),
                is_current=name == days,
            )
            for name, label in _PERIODS.items()
        ],
        "agents": project_definitions(project=viewer.project),
    }
    return page_or_fragment(request, "tools/project.html", "tools/project.html", context)


def _order(request: HttpRequest) -> str:
    order = request.GET.get("sort", "tokens")
    return order if order in ORDERS else "tokens"


def _columns(order: str, kept: dict[str, str]) -> list[Column]:
    return [
        Column(
            label=label, address=_address(kept, name), is_current=name == order, meaning=meaning, unit=unit
        )
        for name, (label, meaning, unit) in _COLUMNS.items()
    ]


def _address(query: dict[str, str], order: str) -> str:
    return f"?{urlencode(query | ({'sort': order} if order != 'tokens' else {}))}"


def _total(rows: Sequence[ToolRow]) -> ToolTotals:
    names = [field.name for field in fields(ToolTotals) if not field.name.startswith("most_")]
    sums: dict[str, Any] = {name: sum(getattr(row, name) for row in rows) for name in names}
    return ToolTotals(
        **sums,
        most_tokens=max((row.output_tokens for row in rows), default=0),
        most_microusd=max((row.cost_microusd for row in rows), default=0),
    )
