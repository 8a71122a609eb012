"""The tabs of the session pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.urls import reverse

from sessions.models import AgentSession
from sessions.pages.access import Viewer
from sessions.pages.links import Link
from sessions.selectors.token_budgets import limit_of

#: Label and URL name of each tab, in display order.
TABS: Sequence[tuple[str, str]] = (
    ("Turns", "session"),
    ("Prompt", "session_prompt"),
    ("Compactions", "session_compactions"),
    ("Tools", "session_tools"),
    ("Memory", "session_memory"),
    ("Replay", "session_replay"),
    ("Raw", "session_raw"),
)


def session_context(viewer: Viewer, session: AgentSession, tab: str) -> dict[str, Any]:
    """Return the context of `sessions/session_base.html`, the frame of all tabs.

    `tab` is the URL name of the current tab. Runs no queries: the session and its parent are loaded already.
    """
    address = [viewer.project.slug, session.pk]
    counts = {"session": session.turn_count, "session_compactions": session.compaction_count or None}
    return {
        "viewer": viewer,
        "session": session,
        "limit": limit_of(session),
        "is_empty": session.turn_count == 0,
        "duration": session.last_active_at - session.started_at,
        "tabs": [
            Link(
                label=label,
                address=reverse(name, args=address),
                is_current=name == tab,
                count=counts.get(name),
            )
            for label, name in TABS
        ],
    }
