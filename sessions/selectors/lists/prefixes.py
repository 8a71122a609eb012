"""Find sessions by the beginning of a word, for a filter that the user is still typing."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from search.keys import prefix_key, project_salt
from search.query import LEAST_PREFIX, query_parse
from sessions.models import SearchSegment
from sessions.selectors.index_postings import postings_load

#: Maximum number of segments that are checked, the newest first, and those checked at a time.
_MOST_SEGMENTS, _BATCH = 300, 50


def sessions_with_prefix(*, project_id: UUID, word: str) -> Sequence[UUID]:
    """Return sessions with words that begin with `word`; none if it is shorter than three characters."""
    prefixes = [term for term in query_parse(word, is_typing=True).terms if term.is_prefix]
    if not prefixes:
        return []
    [prefix] = prefixes
    key = prefix_key(project_salt(project_id), prefix.term)
    rows = SearchSegment.objects.filter(project_id=project_id, keys__contains=[key])
    segments = list(rows.order_by("-ended_at").values_list("pk", "session_id")[:_MOST_SEGMENTS])
    if len(prefix.term.encode()) == LEAST_PREFIX:  # the key contains the whole prefix
        return list(dict.fromkeys(session for _, session in segments))
    found: dict[UUID, None] = {}
    while segments:
        batch, segments = segments[:_BATCH], segments[_BATCH:]
        postings = postings_load([segment for segment, _ in batch], [prefix])
        found |= dict.fromkeys(session for segment, session in batch if segment in postings)
        segments = [(segment, session) for segment, session in segments if session not in found]
    return list(found)
