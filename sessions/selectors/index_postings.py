"""Read the postings of the query's terms from the blocks of segments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import LiteralString

from psycopg.types.numeric import Int8

from search.query import QueryTerm
from search.segments import Document, Postings, block_find, block_find_prefix
from sessions.store.postgres import rows_fetch

_BLOCKS: LiteralString = """
SELECT s.segment, t.number, b.data
  FROM unnest(%(segments)s::bigint[]) AS s (segment)
 CROSS JOIN unnest(%(terms)s::bytea[]) WITH ORDINALITY AS t (term, number)
 CROSS JOIN LATERAL (
     SELECT b.data FROM agent_sessions_searchblock b
      WHERE b.segment_id = s.segment AND b.first_term <= t.term
      ORDER BY b.first_term DESC LIMIT 1) b
"""

#: The blocks that begin with a longer term.
_LONGER: LiteralString = """
SELECT s.segment, t.number, b.data
  FROM unnest(%(segments)s::bigint[]) AS s (segment)
 CROSS JOIN unnest(%(terms)s::bytea[]) WITH ORDINALITY AS t (term, number)
  JOIN agent_sessions_searchblock b
    ON b.segment_id = s.segment AND b.first_term > t.term AND b.first_term < t.term || '\\xff'::bytea
"""


def postings_load(
    segments: Sequence[int], terms: Sequence[QueryTerm]
) -> Mapping[int, Mapping[str, Postings]]:
    """Return the postings of each term by segment and key. One query, and one more for prefixes."""
    found: defaultdict[int, dict[str, Postings]] = defaultdict(dict)
    if segments and terms:
        _collect(found, _BLOCKS, segments, terms)
        if prefixes := [term for term in terms if term.is_prefix]:
            _collect(found, _LONGER, segments, prefixes)
    return found


def _collect(
    found: defaultdict[int, dict[str, Postings]],
    statement: LiteralString,
    segments: Sequence[int],
    terms: Sequence[QueryTerm],
) -> None:
    parameters = {
        "segments": [Int8(segment) for segment in segments],
        "terms": [term.term.encode() for term in terms],
    }
    several: dict[tuple[int, str], list[Postings]] = {}
    for segment, number, data in rows_fetch(statement, parameters):
        term = terms[number - 1]
        for postings in _found(data, term):
            known = found[segment].setdefault(term.key, postings)
            if known is not postings:
                several.setdefault((segment, term.key), [known]).append(postings)
    for (segment, key), parts in several.items():
        found[segment][key] = _united(parts)


def _found(data: bytes, term: QueryTerm) -> Sequence[Postings]:
    if term.is_prefix:
        return block_find_prefix(data, term.term.encode())
    postings = block_find(data, term.term.encode())
    return () if postings is None else (postings,)


def _united(parts: Sequence[Postings]) -> Postings:
    """Return the messages of all parts, each with its largest count."""
    counts: dict[int, int] = {}
    for part in parts:
        for place, count in zip(*part, strict=True):
            if count > counts.get(place, 0):
                counts[place] = count
    places = sorted(counts)
    return bytes(places), bytes(counts[place] for place in places)


def postings_of(documents: Sequence[Document], terms: Sequence[QueryTerm]) -> dict[str, Postings]:
    """Return the postings of each term by key in messages that are not indexed yet."""
    found: dict[str, Postings] = {}
    for term in terms:
        counts = {place: _count(document, term) for place, document in enumerate(documents)}
        places = [place for place, count in counts.items() if count]
        if places:
            found[term.key] = bytes(places), bytes(counts[place] for place in places)
    return found


def _count(document: Document, term: QueryTerm) -> int:
    if not term.is_prefix:
        return document.counts.get(term.term, 0)
    return max((count for name, count in document.counts.items() if name.startswith(term.term)), default=0)
