"""Run a search: read the index, rank the messages, and read the best ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from search.query import terms_of
from search.ranking import LoadedSegment, frequencies, places_of, scores
from search.segments import Header
from search.snippets import Snippet, contains_phrase, snippet_of
from sessions.models import AgentSession
from sessions.selectors.index_postings import postings_load, postings_of
from sessions.selectors.search.candidates import Candidate, Candidates, candidates_find
from sessions.selectors.search.request import MessageFilter, SearchRequest
from sessions.selectors.search.texts import FoundMessage, Place, messages_read
from sessions.selectors.search.visibility import Shown, visibility_of

#: Maximum hits of a search over all pages, and number of hits that are ranked by their text.
MOST_HITS, RANKED_BY_TEXT = 200, 30
#: The most hits from one segment in a search of the project.
_MOST_OF_SEGMENT = 40
#: Bonuses for a text with all words of the query close together, and for an exact spelling.
_TOGETHER, _EXACT = 0.35, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A message that a search found. `score` is comparable within one search.

    `handle` retrieves what the prompt no longer shows of it, if there is one: the part with the best match.
    """

    session: AgentSession
    position: int
    turn: int
    at: datetime
    role: str
    tool: str
    is_error: bool
    score: float
    snippet: Snippet
    shown: Shown
    handle: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHits:
    """One page of hits, best first. `has_more` is set if another page follows."""

    hits: Sequence[SearchHit]
    has_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranked:
    score: float
    place: Place
    role: str
    tool: str
    is_error: bool


def search(request: SearchRequest, *, offset: int = 0, limit: int = 20) -> SearchHits:
    """Return a page of the best matches. A search finds at most `MOST_HITS`."""
    candidates = candidates_find(request)
    loaded = _load(request, candidates)
    frequency = _frequency(request, candidates, loaded)
    needed = MOST_HITS if _needs_text(request) else max(RANKED_BY_TEXT, offset + limit) + 1
    best = _best(request, candidates, loaded, frequency, min(needed, MOST_HITS))
    ranked, texts, snippets = _ranked_by_text(request, best, frequency)
    page = ranked[offset : offset + limit]
    missing = [one.place for one in page if one.place not in texts]
    if missing:
        texts = {**texts, **messages_read(request.project_id, missing)}
    hits = list(_hits(request, page, texts, snippets, frequency))
    return SearchHits(hits=hits, has_more=len(ranked) > offset + limit)


def _load(request: SearchRequest, candidates: Candidates) -> Sequence[LoadedSegment]:
    conditions = (*terms_of(request.query.excluded), *request.messages.file_terms)
    terms = {term.key: term for term in (*conditions, *request.query.terms)}
    postings = postings_load([each.id for each in candidates.segments], list(terms.values()))
    recency = _recency(request, candidates.segments)
    return [
        LoadedSegment(
            header=each.header,
            postings=postings.get(each.id) or postings_of(each.documents, list(terms.values())),
            recency=recency[each.id],
        )
        for each in candidates.segments
    ]


def _recency(request: SearchRequest, segments: Sequence[Candidate]) -> Mapping[int, float]:
    """Return the recency of each segment from 0 to 1, by position in a session and by time in a project."""
    if request.session_id is not None:
        marks = {each.id: float(each.end) for each in segments}
    else:
        marks = {each.id: each.ended_at.timestamp() for each in segments}
    oldest, newest = min(marks.values(), default=0.0), max(marks.values(), default=0.0)
    span = newest - oldest
    return {id: (mark - oldest) / span if span else 1.0 for id, mark in marks.items()}


def _frequency(
    request: SearchRequest, candidates: Candidates, loaded: Sequence[LoadedSegment]
) -> Mapping[str, float]:
    """Return the inverse document frequencies: exact in a session, estimated in a project."""
    messages = sum(len(segment.header) for segment in loaded)
    counts: dict[str, float] = {}
    for term in request.query.terms:
        found = [each for each in loaded if term.key in each.postings]
        count = sum(len(each.postings[term.key][0]) for each in found)
        if candidates.messages is not None:
            density = count / max(1, sum(len(each.header) for each in found))
            counts[term.key] = candidates.shares[term.key] * candidates.messages * density
        else:
            counts[term.key] = count
    return frequencies(request.query, counts, max(candidates.messages or messages, 1))


def _best(
    request: SearchRequest,
    candidates: Candidates,
    loaded: Sequence[LoadedSegment],
    frequency: Mapping[str, float],
    limit: int,
) -> list[_Ranked]:
    """Return the messages with the highest scores, best first; newer ones come first if scores are equal."""
    keys = (*request.query.required, *(term.key for term in request.messages.file_terms))
    most = MOST_HITS if request.session_id is not None else _MOST_OF_SEGMENT
    best: list[tuple[float, int, int, int]] = []
    for number, (candidate, segment) in enumerate(zip(candidates.segments, loaded, strict=True)):
        # Most messages of later segments score less than those already found.
        least = best[-1][0] if len(best) == limit else 0.0
        found = _found(request, segment, frequency, least)
        if _has_conditions(request):
            allowed = _allowed(request, candidate, segment, keys)
            found = {place: score for place, score in found.items() if place in allowed}
        new = [(score, candidate.first + at, number, at) for at, score in found.items() if score >= least]
        if new:
            new.sort(reverse=True)
            best = sorted([*best, *new[:most]], reverse=True)[:limit]
    return [
        _Ranked(
            score=score,
            place=(candidates.segments[number].session_id, position),
            role=loaded[number].header.roles[at],
            tool=loaded[number].header.tools[at],
            is_error=loaded[number].header.errors[at],
        )
        for score, position, number, at in best
    ]


def _found(
    request: SearchRequest, segment: LoadedSegment, frequency: Mapping[str, float], least: float
) -> Mapping[int, float]:
    """Return the scores by place. A query without words finds all messages, the newest first."""
    if not request.query.is_blank:
        return scores(segment, request.query, frequency, least=least)
    return {place: segment.recency + place / 1_000 for place in range(len(segment.header))}


def _has_conditions(request: SearchRequest) -> bool:
    query = request.query
    return bool(request.before is not None or request.messages.is_set or query.required or query.excluded)


def _allowed(
    request: SearchRequest, candidate: Candidate, segment: LoadedSegment, keys: Sequence[str]
) -> set[int]:
    """Return the places of the messages that meet the conditions and contain the terms of all `keys`."""
    end = candidate.end if request.before is None else min(candidate.end, request.before)
    places = set(range(end - candidate.first))
    for key in keys:
        places.intersection_update(segment.postings.get(key, (b"",))[0])
    places -= places_of(segment, request.query.excluded)
    return {place for place in places if _is_wanted(request.messages, segment.header, place)}


def _is_wanted(wanted: MessageFilter, header: Header, place: int) -> bool:
    return (
        (not wanted.role or header.roles[place] == wanted.role)
        and (not wanted.tool or header.tools[place].lower() == wanted.tool.lower())
        and (wanted.error is None or header.errors[place] == wanted.error)
    )


def _ranked_by_text(
    request: SearchRequest, best: Sequence[_Ranked], frequency: Mapping[str, float]
) -> tuple[list[_Ranked], Mapping[Place, FoundMessage], Mapping[Place, Snippet]]:
    """Check the conditions that need the text, and rank the first hits by it."""
    read = best if _needs_text(request) else best[:RANKED_BY_TEXT]
    texts = messages_read(request.project_id, [one.place for one in read])
    first: list[_Ranked] = []
    snippets: dict[Place, Snippet] = {}
    for one in read:
        if one.place not in texts or not _text_matches(request, texts[one.place].text):
            continue
        if len(first) < RANKED_BY_TEXT:
            snippet = snippets[one.place] = snippet_of(texts[one.place].text, request.query, frequency)
            gain = 1 + _TOGETHER * snippet.coverage + _EXACT * snippet.is_exact
            one = replace(one, score=one.score * gain)
        first.append(one)
    by_text = sorted(first[:RANKED_BY_TEXT], key=lambda one: (-one.score, -one.place[1]))
    return [*by_text, *first[RANKED_BY_TEXT:], *best[len(read) :]], texts, snippets


def _needs_text(request: SearchRequest) -> bool:
    return request.query.has_phrases or bool(request.messages.files)


def _text_matches(request: SearchRequest, text: str) -> bool:
    query = request.query
    return all(
        contains_phrase(text, phrase) for phrase in (*query.phrases, *request.messages.files)
    ) and not any(contains_phrase(text, phrase) for phrase in query.excluded_phrases)


def _hits(
    request: SearchRequest,
    page: Sequence[_Ranked],
    texts: Mapping[Place, FoundMessage],
    snippets: Mapping[Place, Snippet],
    frequency: Mapping[str, float],
) -> Iterator[SearchHit]:
    ids = {one.place[0] for one in page}
    sessions = AgentSession.objects.filter(project_id=request.project_id).in_bulk(list(ids))
    found = [one for one in page if one.place in texts and one.place[0] in sessions]
    shown = visibility_of(sessions, [one.place for one in found])
    for one in found:
        message = texts[one.place]
        snippet = snippets.get(one.place) or snippet_of(message.text, request.query, frequency)
        yield SearchHit(
            session=sessions[one.place[0]],
            position=one.place[1],
            turn=message.turn,
            at=message.at,
            role=one.role,
            tool=one.tool,
            is_error=one.is_error,
            score=one.score,
            snippet=snippet,
            shown=shown[one.place],
            handle=shown[one.place].handle_of(None if snippet.at is None else message.part_at(snippet.at)),
        )
