"""Search a session for references that a replayed policy lost, as the tool `search_history` does."""

from __future__ import annotations

from functools import cache

from compaction.replay.reference_count import Search
from sessions.models import AgentSession
from sessions.selectors.search.request import search_expression
from sessions.selectors.search.results import search

#: Number of top hits that must include the message.
FIRST_HITS = 5


def session_search(session: AgentSession) -> Search:
    """Return the search of a session. Results are cached, because most policies lose the same references."""

    @cache
    def positions(name: str, before: int) -> frozenset[int]:
        expression = search_expression(name.lstrip("-"))
        request = expression.request(session.project_id, session_id=session.pk, before=before)
        return frozenset(hit.position for hit in search(request, limit=FIRST_HITS).hits)

    return lambda name, before, position: position in positions(name, before)
