"""The filters of the transcript: role, tool and errors, from the query string."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

from sessions.models import AgentSession
from sessions.pages.access import number_of
from sessions.pages.links import Link
from sessions.pages.turns import turn_views
from sessions.selectors.tools.usage import tool_names
from sessions.selectors.transcripts.filter import ROLES, MessageFilter, messages_page
from sessions.selectors.transcripts.pages import TurnsPage

_LABELS = {"user": "User", "assistant": "Assistant", "tool": "Tool outputs", "system": "System"}


def filter_of(request: HttpRequest) -> MessageFilter:
    role = request.GET.get("role", "")
    return MessageFilter(
        role=role if role in ROLES else "",
        tool=request.GET.get("tool", "")[:200].replace("\0", ""),
        errors=request.GET.get("errors") == "1",
    )


def filter_context(request: HttpRequest, session: AgentSession, filters: MessageFilter) -> dict[str, Any]:
    """Return the links of the filter bar. One query."""
    view = request.GET.get("view", "")
    kinds = {"All": MessageFilter()}
    kinds |= {label: MessageFilter(role=role) for role, label in _LABELS.items()}
    kinds["Errors"] = MessageFilter(errors=True)

    def link(label: str, selected: MessageFilter, count: int | None = None) -> Link:
        address, is_current = _address(selected, view), filters == selected
        return Link(label=label, address=address, is_current=is_current, count=count)

    return {
        "filters": filters,
        "kind_links": [link(*item) for item in kinds.items()],
        "tool_links": [link(name, MessageFilter(tool=name), n) for name, n in tool_names(session=session)],
        "text_links": [
            Link(label="Formatted", address=_address(filters, ""), is_current=view != "text"),
            Link(label="Plain text", address=_address(filters, "text"), is_current=view == "text"),
        ],
    }


def filtered_context(
    request: HttpRequest, session: AgentSession, filters: MessageFilter, *, turn: int | None
) -> dict[str, Any]:
    """Return a page of the matching messages: the newest, around a turn, before or after a position."""
    around = None
    if turn is not None:
        around = session.turns.filter(index=turn).values_list("first_position", flat=True).first()
    page = messages_page(
        session=session,
        filters=filters,
        before=number_of(request, "before"),
        after=number_of(request, "after"),
        around=around,
    )
    view = request.GET.get("view", "")
    shown = TurnsPage(turns=page.turns, preceding=page.preceding, older=False, newer=False)
    return {
        "turns": turn_views(session, shown, is_plain=view == "text"),
        "older_query": _query(filters, view, before=page.before) if page.before is not None else "",
        "newer_query": _query(filters, view, after=page.after) if page.after is not None else "",
    }


def _address(filters: MessageFilter, view: str) -> str:
    return f"?{_query(filters, view)}#transcript-title"


def _query(filters: MessageFilter, view: str, **cursor: int) -> str:
    fields = {
        "role": filters.role,
        "tool": filters.tool,
        "errors": "1" if filters.errors else "",
        "view": "text" if view == "text" else "",
        **{name: str(position) for name, position in cursor.items()},
    }
    return urlencode({name: value for name, value in fields.items() if value})
