"""Find the segments to read for a query, best first."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from django.utils import timezone
from psycopg.types.numeric import Float8, Int4

from search.keys import error_key, prefix_key, project_salt, strong_key, term_key, tool_key
from search.query import QueryTerm
from search.segments import Document, Header, header_of
from sessions.models import AgentSession
from sessions.selectors.filters import filtered
from sessions.selectors.search.documents import messages_to_index
from sessions.selectors.search.request import SearchRequest
from sessions.store.postgres import rows_fetch

#: Maximum segments read for a query in a whole project, and maximum (newest) sessions that a filter selects.
MOST_SEGMENTS, MOST_SESSIONS = 40, 5_000
#: Maximum segments read for a query in one session: about 25,000 messages.
MOST_OF_SESSION = 100
#: Maximum messages of a session that a query reads itself if no worker has indexed them yet.
MOST_NOT_INDEXED = 128
#: Bonus of a strong match in the rank of a segment.
_STRONG = 0.8
#: Seconds for which the totals of a large project are reused.
_MANY_SEGMENTS, _TOTALS_SECONDS = 500, 30.0
_known_totals: dict[UUID, tuple[float, int, int]] = {}

_IN_SESSION: LiteralString = """
SELECT s.id, s.session_id, s.first, s."end", s.ended_at, s.header, NULL::json
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
SELECT s.id, s.session_id, s.first, s."end", s.ended_at, s.header, NULL::json
  FROM agent_sessions_searchsegment s
 WHERE s.project_id = %(project)s AND s.keys @> %(required)s::int[]
   AND (%(sessions)s::uuid[] IS NULL OR s.session_id = ANY(%(sessions)s::uuid[]))
 ORDER BY s.ended_at DESC LIMIT %(limit)s
"""

#: The segments of a project or a session that contain rare terms of the query come first, then the newest.
#: `OFFSET 0` makes every plan find them by their keys: to compare the keys of all segments takes much longer.
_RANKED: LiteralString = """
WITH key AS (
    SELECT * FROM unnest(%(keys)s::int[], %(weights)s::float8[]) WITH ORDINALITY AS key (key, weight, number)
), hit AS MATERIALIZED (
    SELECT key.number, key.weight, s.id, s.ended_at
      FROM key CROSS JOIN LATERAL (
          SELECT * FROM (
              SELECT id, ended_at, project_id, session_id, first FROM agent_sessions_searchsegment
               WHERE keys @> ARRAY[key.key] OFFSET 0) s
           WHERE s.project_id = %(project)s{scope}) s
), frequency AS MATERIALIZED (
    SELECT number, count(*) AS segments,
           ln(1 + greatest(%(total)s - count(*) + 0.5::float8, 0) / (count(*) + 0.5::float8)) AS value
      FROM hit GROUP BY number
), ranked AS (
    SELECT hit.id, hit.ended_at, sum(hit.weight * f.value) AS value
      FROM hit JOIN frequency f USING (number)
     GROUP BY hit.id, hit.ended_at
), best AS (
    SELECT id, ended_at, value FROM ranked
    {condition}
     ORDER BY value DESC, ended_at DESC LIMIT %(limit)s
)
SELECT s.id, s.session_id, s.first, s."end", s.ended_at, s.header,
       (SELECT json_object_agg(number, segments) FROM frequency)
  FROM best JOIN agent_sessions_searchsegment s USING (id)
 ORDER BY best.value DESC, best.ended_at DESC
"""

_OF_SESSION: LiteralString = " AND s.session_id = %(session)s AND s.first < %(before)s"

_MEETS_CONDITIONS: LiteralString = """
     WHERE EXISTS (
         SELECT FROM agent_sessions_searchsegment s
          WHERE s.id = ranked.id AND s.keys @> %(required)s::int[]
            AND (%(sessions)s::uuid[] IS NULL OR s.session_id = ANY(%(sessions)s::uuid[])))
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
    shares: Mapping[str, float]
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
        return _of_session(request, request.session_id, salt, parameters)
    terms = request.query.terms
    has_conditions = bool(parameters["required"]) or request.sessions.is_set
    parameters["sessions"] = _sessions(request)
    if not terms:
        return _read(rows_fetch(_NEWEST, parameters), terms)
    keys, weights = _keys(salt, terms)
    segments, messages = _totals(request.project_id)
    parameters |= {"keys": keys, "weights": weights, "total": Float8(segments)}
    condition = _MEETS_CONDITIONS if has_conditions else ""
    rows = rows_fetch(_RANKED.format(condition=condition, scope=""), parameters)
    return _read(rows, terms, segments=segments, messages=messages)


def _of_session(
    request: SearchRequest, session_id: UUID, salt: int, parameters: dict[str, Any]
) -> Candidates:
    terms = request.query.terms
    before = request.before if request.before is not None else 2**31 - 1
    parameters |= {"session": session_id, "before": Int4(before), "limit": MOST_OF_SESSION}
    new = _not_indexed(request.project_id, session_id)
    [(segments, messages)] = rows_fetch(_SESSION_TOTALS, parameters)
    if segments <= MOST_OF_SESSION or not terms:
        found = _read(rows_fetch(_IN_SESSION, parameters), terms)
        return Candidates(segments=[*new, *found.segments], shares={})
    keys, weights = _keys(salt, terms)
    parameters |= {"keys": keys, "weights": weights, "total": Float8(segments), "sessions": None}
    condition = _MEETS_CONDITIONS if parameters["required"] else ""
    rows = rows_fetch(_RANKED.format(condition=condition, scope=_OF_SESSION), parameters)
    found = _read(rows, terms, segments=segments, messages=messages)
    return replace(found, segments=[*new, *found.segments])


def _read(
    rows: Sequence[Any], terms: Sequence[QueryTerm], *, segments: int = 0, messages: int | None = None
) -> Candidates:
    found = rows[0][-1] if rows and messages is not None else {}
    return Candidates(
        segments=[
            Candidate(
                id=id, session_id=session, first=first, end=end, ended_at=at, header=Header.unpack(header)
            )
            for id, session, first, end, at, header, _ in rows
        ],
        shares={term.key: found.get(str(2 * at + 1), 0) / max(segments, 1) for at, term in enumerate(terms)},
        messages=messages,
    )


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


def _keys(salt: int, terms: Sequence[QueryTerm]) -> tuple[list[Int4], list[Float8]]:
    """Return two keys with their weights for each term: that of its segments, and that of strong matches."""
    keys, weights = [], []
    for term in terms:
        key = prefix_key(salt, term.term) if term.is_prefix else term_key(salt, term.term)
        keys += [Int4(key), Int4(strong_key(salt, term.term))]
        weights += [Float8(term.weight), Float8(_STRONG * term.weight)]
    return keys, weights


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
    rows = filtered(
        AgentSession.objects.filter(project_id=request.project_id),
        request.sessions,
        project_id=request.project_id,
    )
    return list(rows.order_by("-last_active_at").values_list("pk", flat=True)[:MOST_SESSIONS])


def _not_indexed(project_id: UUID, session_id: UUID) -> list[Candidate]:
    """Return the newest messages of a session that no worker has indexed yet as a segment."""
    rows = AgentSession.objects.filter(pk=session_id, project_id=project_id)
    counts = rows.values_list("message_count", "search_state__position").first()
    if counts is None or counts[0] <= (indexed := counts[1] or 0):
        return []
    first = max(indexed, counts[0] - MOST_NOT_INDEXED)
    batch = messages_to_index(session_id=session_id, position=first)
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
