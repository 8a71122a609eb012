"""Rank the messages of segments for a query.

The score of a message is the sum over the words of the query of inverse document frequency times weight
(BM25), multiplied by a power of the share of the query that the message contains: a message with most words
once ranks before one that repeats a few. In a conversation, an answer need not repeat the words of its
question, so a short text also gets a share of the score of its neighbors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from search.query import Group, Query, QueryTerm
from search.scoring import SATURATION, identifier_weight, inverse_frequency, weights
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
#: Upper limit of the weight of a term in a message.
MOST = SATURATION + 1
#: Bonus of the newest message over the oldest: low, or enough to order the mentions of an identifier.
RECENCY, RECENCY_OF_IDENTIFIERS = 0.04, 0.3


@dataclass(frozen=True, kw_only=True)
class LoadedSegment:
    """The part of a segment that a query reads. `postings` maps the keys of terms to their postings.

    `recency` is from 0, the oldest candidate, to 1.
    """

    header: Header
    postings: Mapping[str, Postings]
    recency: float = 0.0

    @cached_property
    def short_texts(self) -> frozenset[int]:
        """The places of the messages that are short and spoken, not a call or the output of a tool."""
        header = self.header
        each = enumerate(zip(header.lengths, header.roles, header.tools, strict=True))
        return frozenset(
            place for place, (length, role, tool) in each if length <= _SHORT and not tool and role in _SPOKEN
        )


def frequencies(query: Query, documents: Mapping[str, float], total: float) -> dict[str, float]:
    """Return the inverse document frequency of each term by key."""
    return {term.key: inverse_frequency(documents.get(term.key, 0.0), total) for term in query.terms}


def scores(
    segment: LoadedSegment, query: Query, frequency: Mapping[str, float], *, least: float = 0.0
) -> dict[int, float]:
    """Return the score of each matching message by place. Ignores phrases and exclusions.

    Messages that score less than `least` may be missing or have a lower score: most of them need not be
    scored, because their words are too common.
    """
    worths = [
        max((frequency[term.key] * term.weight for term in group.terms), default=0.0)
        for group in query.groups
    ]
    whole = sum(worths) or 1.0
    gain = RECENCY_OF_IDENTIFIERS if query.is_identifier else RECENCY
    recent = 1 + gain * segment.recency
    is_question = len(query.groups) >= _QUESTION_WORDS and not query.phrases
    needed, are_all = _needed_terms(segment, query, frequency, worths, least / recent)
    if not needed:
        return {}
    wanted = None if are_all else _places_around(segment, needed, distance=2 if is_question else 0)
    total: dict[int, float] = {}
    covered: dict[int, float] = {}
    for group, worth in zip(query.groups, worths, strict=True):
        found = _group_scores(segment, group, frequency, wanted)
        if is_question and not group.names:
            _share_with_neighbors(segment, found)
        for place, value in found.items():
            total[place] = total.get(place, 0.0) + value
            covered[place] = covered.get(place, 0.0) + worth
    return {place: value * recent * (covered[place] / whole) ** COVERAGE for place, value in total.items()}


def _needed_terms(
    segment: LoadedSegment,
    query: Query,
    frequency: Mapping[str, float],
    worths: Sequence[float],
    least: float,
) -> tuple[Sequence[str], bool]:
    """Return terms of which a message must contain one to score `least` before its recency.

    Also returns whether these are all terms of the query that the segment contains.
    """
    bounded = [
        (MOST * frequency[term.key] * term.weight, number, term.key)
        for number, group in enumerate(query.groups)
        for term in group.terms
        if term.key in segment.postings
    ]
    bounded.sort()
    whole, most, groups = sum(worths) or 1.0, 0.0, set[int]()
    for at, (value, number, _) in enumerate(bounded):
        most += value
        groups.add(number)
        if most * (sum(worths[number] for number in groups) / whole) ** COVERAGE >= least:
            return [key for _, _, key in bounded[at:]], not at
    return [], False


def _places_around(segment: LoadedSegment, terms: Sequence[str], *, distance: int) -> set[int]:
    """Return the messages that contain one of the terms, and those up to `distance` from them."""
    matches: set[int] = set().union(*(segment.postings[term][0] for term in terms))
    steps = range(-distance, distance + 1)
    return {place + step for place in matches for step in steps} if distance else matches


def places_of(segment: LoadedSegment, groups: Sequence[Group]) -> set[int]:
    """Return the messages that contain one of the groups: its exact form, or all its words."""
    found: set[int] = set()
    for group in groups:
        each = [set(segment.postings.get(term.key, (b"", b""))[0]) for term in group.exact]
        found |= set.intersection(*each) if each else set()
    return found


def _group_scores(
    segment: LoadedSegment, group: Group, frequency: Mapping[str, float], wanted: Collection[int] | None
) -> dict[int, float]:
    """Return the scores of the matches of a group, only of the `wanted` places if they are given."""
    found: dict[int, float] = {}
    for term in group.words:
        matches = _term_scores(segment, term, frequency, wanted)
        if not found:
            found = dict(matches)
        elif term.is_prefix:
            _keep_largest(found, matches)
        else:
            for place, value in matches:
                found[place] = found.get(place, 0.0) + value
    for term in group.names:
        _keep_largest(found, _term_scores(segment, term, frequency, wanted))
    return found


def _keep_largest(found: dict[int, float], matches: Iterable[tuple[int, float]]) -> None:
    for place, value in matches:
        if value > found.get(place, 0.0):
            found[place] = value


def _term_scores(
    segment: LoadedSegment, term: QueryTerm, frequency: Mapping[str, float], wanted: Collection[int] | None
) -> Iterable[tuple[int, float]]:
    if term.key not in segment.postings:
        return ()
    places, counts = segment.postings[term.key]
    pairs: Iterable[tuple[int, int]] = zip(places, counts, strict=True)
    if wanted is not None:
        pairs = [pair for pair in pairs if pair[0] in wanted]
    factor, lengths = term.weight * frequency[term.key], segment.header.lengths
    if term.is_identifier:
        return [(p, factor * 2 * identifier_weight(c)) for p, c in pairs]
    if counts.count(1) == len(counts):
        once = weights(1)
        return [(p, factor * once[lengths[p]]) for p, _ in pairs]
    return [(p, factor * weights(c)[lengths[p]]) for p, c in pairs]


def _share_with_neighbors(segment: LoadedSegment, found: dict[int, float]) -> None:
    """Add a share of each score to adjacent short texts that do not match."""
    short = segment.short_texts
    shares: dict[int, float] = {}
    for place in found.keys() & short:
        for neighbor, share in ((place + 1, AFTER_MATCH), (place - 1, BEFORE_MATCH)):
            if neighbor in short and neighbor not in found:
                shares[neighbor] = max(shares.get(neighbor, 0.0), share * found[place])
    found.update(shares)
