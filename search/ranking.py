"""Rank the messages of segments for a query.

The score of a message is the sum over the words of the query of inverse document frequency times weight
(BM25), multiplied by a power of the share of the query that the message contains: a message with most words
once ranks before one that repeats a few. In a conversation, an answer need not repeat the words of its
question, so a short text also gets a share of the score of its neighbors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from search.query import Group, Query, QueryTerm
from search.scoring import identifier_weight, inverse_frequency, weights
from search.segments import Header, Postings

#: Exponent of the share of the query, weighted by inverse document frequency, that a message contains.
COVERAGE = 1.5
#: Shares of the scores of the previous and the next message.
AFTER_MATCH, BEFORE_MATCH = 0.3, 0.15
#: Length code of the longest message that gets such a share (about 250 words).
_SHORT = 96
#: Minimum number of words of a query that counts as a question, whose answer may not repeat them.
_QUESTION_WORDS = 3
_SPOKEN = frozenset({"user", "assistant"})
#: Bonus of the newest message over the oldest: low, or enough to order the mentions of an identifier.
RECENCY, RECENCY_OF_IDENTIFIERS = 0.04, 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSegment:
    """The part of a segment that a query reads. `postings` maps the keys of terms to their postings.

    `recency` is from 0, the oldest candidate, to 1.
    """

    header: Header
    postings: Mapping[str, Postings]
    recency: float = 0.0


def frequencies(query: Query, documents: Mapping[str, float], total: float) -> dict[str, float]:
    """Return the inverse document frequency of each term by key."""
    return {term.key: inverse_frequency(documents.get(term.key, 0.0), total) for term in query.terms}


def scores(segment: LoadedSegment, query: Query, frequency: Mapping[str, float]) -> dict[int, float]:
    """Return the score of each matching message by place. Ignores phrases and exclusions."""
    total: dict[int, float] = {}
    covered: dict[int, float] = {}
    is_question = len(query.groups) >= _QUESTION_WORDS and not query.phrases
    values = [
        max((frequency[term.key] * term.weight for term in group.terms), default=0.0)
        for group in query.groups
    ]
    whole = sum(values) or 1.0
    for group, worth in zip(query.groups, values, strict=True):
        found = _group_scores(segment, group, frequency)
        if is_question and not group.names:
            _share_with_neighbours(segment.header, found)
        for place, value in found.items():
            total[place] = total.get(place, 0.0) + value
            covered[place] = covered.get(place, 0.0) + worth
    gain = RECENCY_OF_IDENTIFIERS if query.is_identifier else RECENCY
    recent = 1 + gain * segment.recency
    return {place: value * recent * (covered[place] / whole) ** COVERAGE for place, value in total.items()}


def places_of(segment: LoadedSegment, groups: Sequence[Group]) -> set[int]:
    """Return the messages that contain one of the groups: its exact form, or all its words."""
    found: set[int] = set()
    for group in groups:
        each = [set(segment.postings.get(term.key, (b"", b""))[0]) for term in group.exact]
        found |= set.intersection(*each) if each else set()
    return found


def _group_scores(segment: LoadedSegment, group: Group, frequency: Mapping[str, float]) -> dict[int, float]:
    found: dict[int, float] = {}
    for term in group.words:
        for place, value in _term_scores(segment, term, frequency):
            found[place] = (
                max(found.get(place, 0.0), value) if term.is_prefix else found.get(place, 0.0) + value
            )
    for term in group.names:
        for place, value in _term_scores(segment, term, frequency):
            found[place] = max(found.get(place, 0.0), value)
    return found


def _term_scores(
    segment: LoadedSegment, term: QueryTerm, frequency: Mapping[str, float]
) -> list[tuple[int, float]]:
    places, counts = segment.postings.get(term.key, (b"", b""))
    factor, lengths = term.weight * frequency[term.key], segment.header.lengths
    if term.is_identifier:
        return [(p, factor * 2 * identifier_weight(c)) for p, c in zip(places, counts, strict=True)]
    return [(p, factor * weights(c)[lengths[p]]) for p, c in zip(places, counts, strict=True)]


def _share_with_neighbours(header: Header, found: dict[int, float]) -> None:
    """Add a share of each score to adjacent short texts that do not match."""
    last = len(header) - 1
    shares: dict[int, float] = {}
    for place, value in found.items():
        if not _is_short_text(header, place):
            continue
        for neighbour, share in ((place + 1, AFTER_MATCH), (place - 1, BEFORE_MATCH)):
            if 0 <= neighbour <= last and neighbour not in found and _is_short_text(header, neighbour):
                shares[neighbour] = max(shares.get(neighbour, 0.0), share * value)
    found.update(shares)


def _is_short_text(header: Header, place: int) -> bool:
    return header.lengths[place] <= _SHORT and header.roles[place] in _SPOKEN and not header.tools[place]
