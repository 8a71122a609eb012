"""The columns of the session list that a viewer hides, kept in a cookie of the browser."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpRequest

#: The name of the cookie, which holds the hidden columns, separated by dots.
COOKIE = "hidden_columns"
#: The columns that can be hidden, with their labels.
COLUMNS: Mapping[str, str] = {
    "agent": "Agent, model",
    "size": "Prompt size",
    "health": "Health",
    "turns": "Turns",
    "last": "Last prompt",
    "peak": "Peak",
    "saved": "Saved",
    "cost": "Cost",
    "activity": "Last activity",
}


def hidden_columns(request: HttpRequest) -> frozenset[str]:
    return frozenset(request.COOKIES.get(COOKIE, "").split(".")) & COLUMNS.keys()
