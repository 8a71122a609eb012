"""The filters of the transcript: role, tool and errors, from the query string."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

from sessions.models import AgentSession
from sessions.pages.access import number_of
from sessions.pages.turns import turn_views
from sessions.selectors.tools.usage import tool_names
from sessions.selectors.transcript import TurnsPage
from sessions.selectors.transcript_filter import ROLES, MessageFilter, messages_page

_LABELS = {"user": "User", "assistant": "Assistant", "tool": "Tool outputs", "system": "System"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterLink:
    """A link that selects messages. `query` is its query string."""

    label: str
    query: str
    is_current: bool
    count: int | None = None


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
    tools = [
        FilterLink(
            label=name,
            query=_query(MessageFilter(tool=name), view),
            is_current=name == filters.tool,
            count=count,
        )
        for name, count in tool_names(session=session)
    ]
    return {
        "role_links": _role_links(filters, view),
        "tool_links": tools,
        "filters": filters,
        "rendered_query": _query(filters, ""),
        "plain_query": _query(filters, "text"),
    }


def filtered_context(request: HttpRequest, session: AgentSession, filters: MessageFilter) -> dict[str, Any]:
    """Return a page of the matching messages."""
    page = messages_page(session=session, filters=filters, before=number_of(request, "before"))
    view = request.GET.get("view", "")
    shown = TurnsPage(turns=page.turns, preceding=page.preceding, older=False, newer=False)
    return {
        "found": page,
        "turns": turn_views(session, shown, is_plain=view == "text"),
        "more_query": _query(filters, view, before=page.before) if page.before is not None else "",
    }


def _role_links(filters: MessageFilter, view: str) -> Sequence[FilterLink]:
    roles = [
        FilterLink(
            label=_LABELS[role],
            query=_query(MessageFilter(role=role), view),
            is_current=filters == MessageFilter(role=role),
        )
        for role in ROLES
    ]
    errors = replace(MessageFilter(), errors=True)
    return [
        FilterLink(label="All", query=_query(MessageFilter(), view), is_current=not filters.is_set),
        *roles,
        FilterLink(label="Errors", query=_query(errors, view), is_current=filters == errors),
    ]


def _query(filters: MessageFilter, view: str, before: int | None = None) -> str:
    fields = {
        "role": filters.role,
        "tool": filters.tool,
        "errors": "1" if filters.errors else "",
        "view": "text" if view == "text" else "",
        "before": "" if before is None else str(before),
    }
    return urlencode({name: value for name, value in fields.items() if value})
