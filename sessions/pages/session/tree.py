"""The sub-agents and forks of a session."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from sessions.models import AgentSession
from sessions.pages.access import Viewer, page_or_fragment, with_session
from sessions.pages.tabs import session_context
from sessions.selectors.lists.tree import session_tree


@require_safe
@with_session
def session_sub_agents(request: HttpRequest, viewer: Viewer, session: AgentSession) -> HttpResponse:
    """Show the sub-agents and forks of a session; for htmx, as a list for the row of the session."""
    context = session_context(viewer, session, "session") | tree_context(session)
    return page_or_fragment(request, "sessions/sub_agents.html", "sessions/_sub_agents.html", context)


def tree_context(session: AgentSession) -> dict[str, Any]:
    tree = session_tree(session=session)
    descendants = tree[0].descendants if tree else None
    is_cut = descendants is not None and descendants.sessions >= len(tree)
    return {"tree": tree, "descendants": descendants, "is_tree_cut": is_cut}
