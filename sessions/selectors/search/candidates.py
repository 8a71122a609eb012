"""Find the segments to read for a query, best first."""

from __future__ import annotations

import time
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from django.utils import timezone
from psycopg.types.numeric import Int4

from search.keys import error_key, prefix_key, project_salt, strong_key, term_key, tool_key
from search.query import PART, QueryTerm
from search.scoring import inverse_frequency
from search.segments import Document, Header, header_of
from search.selection import best_segments
from sessions.models import AgentSession
from sessions.selectors.lists.filters import sessions_filtered
from sessions.selectors.search.documents import messages_to_index
from sessions.selectors.search.request import SearchRequest
from sessions.store.postgres import array_literal, rows_fetch, rows_fetch_by_index

#: Maximum segments read for a query in a whole project, and maximum (newest) sessions that a filter selects.
MOST_SEGMENTS, MOST_SESSIONS = 40, 5_000
#: Maximum segments read for a query in one session: about 25,000 messages.
MOST_OF_SESSION = 100
#: Maximum messages of a session that a query reads itself if no worker has indexed them yet.
MOST_NOT_INDEXED = 128
#: Bonus of a strong match in the rank of a segment.
_STRONG = 0.8
#: Keys that are looked up by one statement.
_KEYS_AT_ONCE = 64
#: Seconds for which the totals of a large project are reused.
_MANY_SEGMENTS, _TOTALS_SECONDS = 500, 30.0
_known_totals: dict[UUID, tuple[float, int, int]] = {}

_IN_SESSION: LiteralString = """
SELECT s.id, s.session_id, s.first, s."end", s.ended_at, s.header
  FROM agent_sessions_searchsegment s
 WHERE s.session_id = %(session)s AND s.project_id = %(project)s AND s.first < %(before)s
   AND s.keys @> %(required)s::int[]
 ORDER BY s.first DESC LIMIT %(limit)s
"""

_SESSION_TOTALS: LiteralString = """
SELECT count(*), coalesce(sum("end" - first), 0)::bigint
  FROM agent_sessions_searchsegment WHERE session_id = %(session)s AND first < %(before)s
"""

_NEWEST: LiteralString = """
SELECT s.id, s.session_id, s.first, s."end", s.ended_at, s.header
  FROM agent_sessions_searchsegment s
 WHERE s.project_id = %(project)s AND s.keys @> %(required)s::int[]
   AND (%(sessions)s::uuid[] IS NULL OR s.session_id = ANY(%(sessions)s::uuid[]))
 ORDER BY s.ended_at DESC LIMIT %(limit)s
"""

#: The segments that contain each key. `OFFSET 0` makes Postgres use the index of the keys, because comparing
#: the keys of all segments takes much longer.
_CONTAINING: LiteralString = """
SELECT key.number, s.ids
  FROM unnest(%(keys)s::int[]) WITH ORDINALITY AS key (key, number)
 CROSS JOIN LATERAL (
     SELECT array_agg(s.id) AS ids
       FROM (SELECT id, project_id, session_id, first FROM agent_sessions_searchsegment
              WHERE keys @> ARRAY[key.key] OFFSET 0) s
      WHERE s.project_id = %(project)s{scope}) s
"""

_OF_SESSION: LiteralString = " AND s.session_id = %(session)s AND s.first < %(before)s"

_OF_SESSIONS: LiteralString = """
SELECT id FROM agent_sessions_searchsegment
 WHERE project_id = %(project)s AND session_id = ANY(%(sessions)s::uuid[])
"""

#: `last` are equally good segments, of which the newest are read.
_BEST: LiteralString = """
SELECT s.id, s.session_id, s.first, s."end", s.ended_at, s.header
  FROM agent_sessions_searchsegment s
 WHERE s.id = ANY(%(first)s::bigint[])
 UNION ALL (
SELECT s.id, s.session_id, s.first, s."end", s.ended_at, s.header
  FROM agent_sessions_searchsegment s
 WHERE s.id = ANY(%(last)s::bigint[])
 ORDER BY s.ended_at DESC LIMIT %(limit)s)
"""

_TOTALS: LiteralString = """
SELECT count(*), coalesce(sum("end" - first), 0)::bigint
  FROM agent_sessions_searchsegment WHERE project_id = %(project)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A segment to read. `documents` are the messages of a segment that is not stored yet."""

    id: int
    session_id: UUID
    first: int
    end: int
    ended_at: datetime
    header: Header
    documents: Sequence[Document] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The segments to read.

    If only the best segments are read, `shares` maps terms to the share of segments that contain them, and
    `messages` is the number of indexed messages.
    """

    segments: Sequence[Candidate]
    shares: Mapping[str, float] = field(default_factory=dict)
    messages: int | None = None


def candidates_find(request: SearchRequest) -> Candidates:
    """Return the segments of the session, or the best segments of a long session or of the project."""
    salt = project_salt(request.project_id)
    parameters: dict[str, Any] = {
        "project": request.project_id,
        "required": [Int4(key) for key in _required_keys(salt, request)],
        "limit": MOST_SEGMENTS,
    }
    if request.session_id is not None:
        return _of_session(request, request.session_id, parameters)
    if not request.query.terms:
        parameters["sessions"] = _sessions(request)
        return Candidates(segments=_read(rows_fetch(_NEWEST, parameters)))
    segments, messages = _totals(request.project_id)
    return _ranked(request, parameters, segments=segments, messages=messages)


def _of_session(request: SearchRequest, session_id: UUID, parameters: dict[str, Any]) -> Candidates:
    before = request.before if request.before is not None else 2**31 - 1
    parameters |= {"session": session_id, "before": Int4(before), "limit": MOST_OF_SESSION}
    new = _not_indexed(request.project_id, session_id)
    [(segments, messages)] = rows_fetch(_SESSION_TOTALS, parameters)
    if segments <= MOST_OF_SESSION or not request.query.terms:
        return Candidates(segments=[*new, *_read(rows_fetch(_IN_SESSION, parameters))])
    found = _ranked(request, parameters, segments=segments, messages=messages)
    return replace(found, segments=[*new, *found.segments])


def _ranked(
    request: SearchRequest, parameters: dict[str, Any], *, segments: int, messages: int
) -> Candidates:
    """Return the segments with the rarest terms of the query; of equal ones, the newest."""
    terms, required = request.query.terms, parameters["required"]
    keys, weights = _keys(project_salt(request.project_id), terms)
    scope = "" if request.session_id is None else _OF_SESSION
    lists = _containing([*keys, *required], parameters, scope)
    values = [w * inverse_frequency(len(ids), segments) for w, ids in zip(weights, lists, strict=False)]
    allowed = [set(ids) for ids in lists[len(keys) :]]
    if request.session_id is None and (sessions := _sessions(request)) is not None:
        rows = rows_fetch(_OF_SESSIONS, {"project": request.project_id, "sessions": sessions})
        allowed.append({id for (id,) in rows})
    chosen: Iterable[Collection[int]] = lists[: len(keys)]
    if allowed:
        chosen = [set.intersection(*allowed).intersection(ids) for ids in chosen]
    best = best_segments(list(zip(values, chosen, strict=True)), parameters["limit"])
    least = min(best.values(), default=0.0)
    first = [id for id, value in best.items() if value > least]
    last = [id for id, value in best.items() if value == least]
    read = {
        "first": array_literal(first),
        "last": array_literal(last),
        "limit": parameters["limit"] - len(first),
    }
    found = _read(rows_fetch(_BEST, read))
    found.sort(key=lambda segment: (best[segment.id], segment.ended_at), reverse=True)
    return Candidates(
        segments=found,
        shares={term.key: len(ids) / max(segments, 1) for term, ids in zip(terms, lists, strict=False)},
        messages=messages,
    )


def _containing(
    keys: Sequence[Int4], parameters: Mapping[str, Any], scope: LiteralString
) -> list[Sequence[int]]:
    """Return the segments that contain each key, compactly: a long query in a large project has many."""
    statement = _CONTAINING.format(scope=scope)
    found: list[Sequence[int]] = []
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        rows = rows_fetch_by_index(statement, {**parameters, "keys": keys[start : start + _KEYS_AT_ONCE]})
        found += [array("q", ids or ()) for _, ids in sorted(rows)]
    return found


def _read(rows: Sequence[Any]) -> list[Candidate]:
    return [
        Candidate(id=id, session_id=session, first=first, end=end, ended_at=at, header=Header.unpack(header))
        for id, session, first, end, at, header in rows
    ]


def _totals(project_id: UUID) -> tuple[int, int]:
    """Return the numbers of segments and of indexed messages of a project.

    In large projects, counting is slow and barely affects the weights of terms, so the totals may be up to
    `_TOTALS_SECONDS` old.
    """
    known = _known_totals.get(project_id)
    if known is not None and known[0] > time.monotonic():
        return known[1:]
    [(segments, messages)] = rows_fetch(_TOTALS, {"project": project_id})
    if segments >= _MANY_SEGMENTS:
        _known_totals[project_id] = (time.monotonic() + _TOTALS_SECONDS, segments, messages)
    return segments, messages


def _keys(salt: int, terms: Sequence[QueryTerm]) -> tuple[list[Int4], list[float]]:
    """Return keys with their weights: those of the terms in order, and then those of strong matches.

    The parts of an identifier are too many, and matter too little, to look for strong matches of them.
    """
    keys = [prefix_key(salt, term.term) if term.is_prefix else term_key(salt, term.term) for term in terms]
    whole = [term for term in terms if term.weight > PART]
    keys += [strong_key(salt, term.term) for term in whole]
    weights = [term.weight for term in terms] + [_STRONG * term.weight for term in whole]
    return [Int4(key) for key in keys], weights


def _required_keys(salt: int, request: SearchRequest) -> Iterable[int]:
    yield from (term_key(salt, term) for term in request.query.required)
    yield from (term_key(salt, term.term) for term in request.messages.file_terms)
    if request.messages.tool:
        yield tool_key(salt, request.messages.tool)
    if request.messages.error:
        yield error_key(salt)


def _sessions(request: SearchRequest) -> list[UUID] | None:
    """Return the newest sessions that meet the conditions, or None if there are no conditions."""
    if not request.sessions.is_set:
        return None
    rows = sessions_filtered(request.sessions, project_id=request.project_id)
    return list(rows.order_by("-last_active_at").values_list("pk", flat=True)[:MOST_SESSIONS])


def _not_indexed(project_id: UUID, session_id: UUID) -> list[Candidate]:
    """Return the newest messages of a session that no worker has indexed yet as a segment."""
    rows = AgentSession.objects.filter(pk=session_id, project_id=project_id)
    found = rows.values_list("format", "message_count", "search_state__position").first()
    if found is None:
        return []
    format, count, indexed = found
    if count <= (indexed or 0):
        return []
    first = max(indexed or 0, count - MOST_NOT_INDEXED)
    batch = messages_to_index(session_id=session_id, format=format, position=first)
    if batch is None:
        return []
    return [
        Candidate(
            id=0,
            session_id=session_id,
            first=first,
            end=batch.end,
            ended_at=timezone.now(),
            header=header_of(batch.documents),
            documents=batch.documents,
        )
    ]
