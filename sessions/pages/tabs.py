"""The tabs of a session's page: one line for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from sessions.models import AgentSession
from sessions.pages.access import Viewer
from sessions.selectors.token_budgets import limit_of

#: What a tab is called, and the name of its address, in the order in which they stand.
TABS: Sequence[tuple[str, str]] = (
    ("Turns", "session"),
    ("Prompt", "session_prompt"),
    ("Compactions", "session_compactions"),
    ("Memory", "session_memory"),
    ("Replay", "session_replay"),
    ("Raw", "session_raw"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """A link of the tab bar; `here` where what is looked at belongs to it, `count` of what there is in it."""

    label: str
    address: str
    here: bool
    count: int | None


def session_context(viewer: Viewer, session: AgentSession, tab: str) -> dict[str, Any]:
    """What `sessions/session_base.html` shows around every tab; `tab` is the name of the tab's address.

    Reads nothing beyond the session and its parent, which `session_of` has read.
    """
    address = [viewer.project.slug, session.pk]
    counts = {"session": session.turn_count, "session_compactions": session.compaction_count or None}
    return {
        "viewer": viewer,
        "session": session,
        "limit": limit_of(session),
        "duration": session.last_active_at - session.started_at,
        "tabs": [
            Tab(
                label=label,
                address=reverse(name, args=address),
                here=name == tab,
                count=counts.get(name),
            )
            for label, name in TABS
        ],
    }
