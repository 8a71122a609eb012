"""Find sessions by the beginning of a word, for a filter that the user is still typing."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from search.keys import prefix_key, project_salt
from search.query import LEAST_PREFIX, query_parse
from sessions.models import SearchSegment
from sessions.selectors.index_postings import postings_load

#: Maximum number of segments that are checked, the newest first.
_MOST_SEGMENTS = 300


def sessions_with_prefix(*, project_id: UUID, word: str) -> Sequence[UUID]:
    """Return sessions with words that begin with `word`; none if it is shorter than three characters."""
    prefixes = [term for term in query_parse(word, is_typing=True).terms if term.is_prefix]
    if not prefixes:
        return []
    [prefix] = prefixes
    key = prefix_key(project_salt(project_id), prefix.term)
    rows = SearchSegment.objects.filter(project_id=project_id, keys__contains=[key])
    sessions = dict(rows.order_by("-ended_at").values_list("pk", "session_id")[:_MOST_SEGMENTS])
    if len(prefix.term.encode()) > LEAST_PREFIX:  # the key contains only the first characters
        found = postings_load(list(sessions), [prefix])
        sessions = {segment: session for segment, session in sessions.items() if segment in found}
    return list(dict.fromkeys(sessions.values()))
