"""Select the part of a text that matches a query best, with the positions of its matches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from search.query import Query
from search.terms import RUN, fold, words

#: Maximum characters of a snippet, and characters before the first match.
LENGTH, BEFORE = 240, 60
#: Maximum characters of a text to search.
_READ = 200_000
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """A part of a text. `marks` are the start and end of each match in it, `at` is the position of the first
    match in the whole text.

    `coverage` is the share of the query, weighted by frequency, that occurs within the snippet, from 0 to 1.
    `is_exact` is set if it contains an identifier of the query, or the whole query, in its exact spelling.
    """

    text: str
    marks: Sequence[tuple[int, int]] = ()
    at: int | None = None
    coverage: float = 0.0
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class _Match:
    """A match. `kind` is twice the number of the group, plus 1 for an identifier as a whole."""

    start: int
    end: int
    kind: int


def snippet_of(text: str, query: Query, frequency: Mapping[str, float]) -> Snippet:
    """Return the best part of a text for a query."""
    text = text[:_READ]
    matches = _matches(text, query)
    values = [
        max((frequency.get(term.key, 0.0) * term.weight for term in terms), default=0.0)
        for group in query.groups
        for terms in (group.words, group.names)
    ]
    most = sum(max(values[at : at + 2]) for at in range(0, len(values), 2))
    first, coverage = _best(matches, values)
    if first is None:
        return Snippet(text=text[:LENGTH])
    start = _word_start(text, max(0, first.start - BEFORE), first.start)
    end = min(len(text), start + LENGTH)
    shown = [match for match in matches if start <= match.start and match.end <= end]
    end = _word_end(text, end, max((match.end for match in shown), default=start))
    return Snippet(
        text=text[start:end],
        at=first.start,
        marks=_merged([(match.start - start, match.end - start) for match in shown]),
        coverage=min(1.0, coverage / most) if most else 0.0,
        is_exact=any(group.names and group.text in text for group in query.groups),
    )


def _word_start(text: str, start: int, limit: int) -> int:
    """Return the start of the first whole word from `start` to `limit`, or `start` if there is none."""
    if not start:
        return 0
    space = _SPACE.search(text, start - 1, limit)
    return space.end() if space else start


def _word_end(text: str, end: int, limit: int) -> int:
    """Return the end of the last whole word from `limit` to `end`, or `end` if there is none."""
    if end == len(text) or text[end].isspace():
        return end
    spaces = list(_SPACE.finditer(text, limit, end))
    return spaces[-1].start() if spaces else end


def contains_phrase(text: str, phrase: str) -> bool:
    """Return whether a text contains a folded phrase, ignoring differences in whitespace."""
    return phrase in " ".join(fold(text).split())


def _matches(text: str, query: Query) -> list[_Match]:
    """Return the matches in order. An identifier is marked as a whole if it matches, else its parts are."""
    wanted = {term.term: at for at, group in enumerate(query.groups) for term in group.words}
    prefixes = [
        (term.term, at) for at, group in enumerate(query.groups) for term in group.terms if term.is_prefix
    ]
    found: list[_Match] = []
    runs: dict[str, int | None] = {}
    for start, run in _runs(text, [*wanted, *(prefix for prefix, _ in prefixes)]):
        if run not in runs:
            runs[run] = _group_of(run, wanted, prefixes)
        if (group := runs[run]) is not None:
            found.append(_Match(start, start + len(run), 2 * group))
    return sorted(found + _names(text, query), key=lambda match: (match.start, -match.end))


def _runs(text: str, terms: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the words that may match one of the terms, with their positions.

    A word begins with its stem, except for a final `e` or `i`, so most words need no analysis.
    """
    if not (text.isascii() and all(map(str.isascii, terms))):
        yield from ((match.start(), match[0]) for match in RUN.finditer(text))
        return
    beginnings = {term[:-1] if len(term) > 2 and term[-1] in "ei" else term for term in terms}
    if not beginnings:
        return
    pattern = re.compile("|".join(map(re.escape, sorted(beginnings))))
    end = -1
    for match in pattern.finditer(text.lower()):
        if match.start() < end:
            continue
        start, end = _ends_of_run(text, match.start())
        yield start, text[start:end]


def _ends_of_run(text: str, at: int) -> tuple[int, int]:
    match = RUN.match(text, at)
    end = match.end() if match else at
    while at and text[at - 1].isalnum():
        at -= 1
    return at, end


def _group_of(run: str, wanted: Mapping[str, int], prefixes: Sequence[tuple[str, int]]) -> int | None:
    for word in words(run):
        if word in wanted:
            return wanted[word]
    folded = fold(run)
    return next((group for prefix, group in prefixes if folded.startswith(prefix)), None)


def _names(text: str, query: Query) -> list[_Match]:
    folded = text.lower()
    if len(folded) != len(text):
        folded = text
    found = []
    for at, group in enumerate(query.groups):
        for name in group.names:
            start = folded.find(name.term)
            while start >= 0:
                found.append(_Match(start, start + len(name.term), 2 * at + 1))
                start = folded.find(name.term, start + len(name.term))
    return found


def _best(matches: Sequence[_Match], values: Sequence[float]) -> tuple[_Match | None, float]:
    """Return the match at which the best window begins, and the value of the matches in it."""
    best: _Match | None = None
    most = -1.0
    inside: dict[int, int] = {}
    value, end = 0.0, 0
    for match in matches:
        while end < len(matches) and matches[end].end <= match.start + LENGTH - BEFORE:
            kind = matches[end].kind
            inside[kind] = inside.get(kind, 0) + 1
            value += values[kind] if inside[kind] == 1 else 0.0
            end += 1
        if value > most + 1e-9:
            best, most = match, value
        if inside.get(match.kind):
            inside[match.kind] -= 1
            value -= values[match.kind] if not inside[match.kind] else 0.0
    return best, max(most, 0.0)


def _merged(marks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in marks:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
