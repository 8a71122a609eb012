"""Parse a query: words, identifiers, "phrases" and -exclusions.

No word is mandatory: a natural question finds the messages that match its rare words best. Phrases are
mandatory. A word that is an identifier, such as `max_pool_size` or `pool.py`, matches its exact form best,
then its other spellings and its short form, then its parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from search.terms import MAX_TERM, fold, identifiers, joined_form, words

_PIECE = re.compile(r'(-?)(?:"([^"]*)"?|(\S+))')
_EDGES = " \t\r\n.,;:!?()[]{}<>'`\u201c\u201d\u2018\u2019"
_BLANK = ' \t\r\n"-'
#: Maximum number each of words, phrases, excluded words and excluded phrases. Further ones are ignored.
MOST_GROUPS = 24
#: Minimum length of a prefix. Shorter ones match too much.
LEAST_PREFIX = 3

#: Weights of matches relative to the exact form of an identifier.
OTHER_SPELLING, SHORT_FORM, PART = 0.7, 0.6, 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerm:
    """A term to look up. `weight` is the weight of its match; with `is_prefix`, longer terms match, too."""

    term: str
    weight: float = 1.0
    is_identifier: bool = False
    is_prefix: bool = False

    @property
    def key(self) -> str:
        """The key of the term in mappings."""
        return f"{self.term}*" if self.is_prefix else self.term


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The terms for one word of the query.

    These are the forms of an identifier, of which the best match counts, and words, whose matches add up and
    count if no form matches.
    """

    text: str
    names: Sequence[QueryTerm] = ()
    words: Sequence[QueryTerm] = ()

    @property
    def terms(self) -> Sequence[QueryTerm]:
        return (*self.names, *self.words)

    @property
    def exact(self) -> Sequence[QueryTerm]:
        """The terms that a message must contain: the exact form of the identifier, or all words."""
        return self.names[:1] or self.words


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A parsed query. `phrases` are folded; `excluded` are groups, `excluded_phrases` folded."""

    groups: Sequence[Group] = ()
    phrases: Sequence[str] = ()
    excluded: Sequence[Group] = ()
    excluded_phrases: Sequence[str] = ()
    required: Sequence[str] = ()
    text: str = ""

    @property
    def is_blank(self) -> bool:
        """Whether the query is empty, as opposed to a query without terms in the index."""
        return not self.text.strip(_BLANK)

    @property
    def terms(self) -> Sequence[QueryTerm]:
        """The distinct terms of all groups."""
        return terms_of(self.groups)

    @property
    def is_identifier(self) -> bool:
        """Whether the query consists of identifiers only."""
        return bool(self.groups) and all(group.names for group in self.groups)

    @property
    def has_phrases(self) -> bool:
        """Whether the text of a message is needed to decide if it matches."""
        return bool(self.phrases or self.excluded_phrases)


def terms_of(groups: Sequence[Group]) -> Sequence[QueryTerm]:
    """Return the distinct terms of the groups."""
    return tuple({term.key: term for group in groups for term in group.terms}.values())


def query_parse(text: str, *, is_typing: bool = False) -> Query:
    """Parse a query. With `is_typing`, the last word is also a prefix."""
    groups: list[Group] = []
    phrases: list[str] = []
    excluded: list[Group] = []
    excluded_phrases: list[str] = []
    required: list[str] = []
    for minus, phrase, word in _PIECE.findall(text):
        if phrase.strip():
            (excluded_phrases if minus else phrases).append(" ".join(fold(phrase).split()))
            if not minus:
                found = list(_groups(phrase))
                groups += found
                required += (term.term for group in found for term in group.exact)
        elif word.strip(_EDGES):
            (excluded if minus else groups).extend(_groups(word))
    if is_typing and groups and not text.endswith((" ", '"')):
        groups[-1] = _as_prefix(groups[-1])
    groups = list(dict.fromkeys(groups))[:MOST_GROUPS]
    looked_up = {term.key for term in terms_of(groups)}
    return Query(
        groups=tuple(groups),
        phrases=tuple(dict.fromkeys(phrases))[:MOST_GROUPS],
        excluded=tuple(dict.fromkeys(excluded))[:MOST_GROUPS],
        excluded_phrases=tuple(dict.fromkeys(excluded_phrases))[:MOST_GROUPS],
        required=tuple(term for term in dict.fromkeys(required) if term in looked_up),
        text=text,
    )


def _groups(text: str) -> Iterator[Group]:
    """Yield one group per identifier, or one per word."""
    for piece in text.split():
        piece = piece.strip(_EDGES)
        if names := _names(piece):
            parts = (QueryTerm(term=word, weight=PART) for word in dict.fromkeys(words(piece)))
            known = {name.term for name in names}
            yield Group(text=piece, names=names, words=tuple(p for p in parts if p.term not in known))
        else:
            for word in words(piece):
                yield Group(text=piece, words=(QueryTerm(term=word),))


def _names(piece: str) -> tuple[QueryTerm, ...]:
    """Return the forms of an identifier, the exact one first; empty if the piece is not an identifier."""
    found, exact = identifiers(piece), fold(piece).removeprefix("./")[:MAX_TERM]
    if not found:
        return ()
    if exact not in found:
        exact = max(found, key=len)
    names = [QueryTerm(term=exact, is_identifier=True)]
    for name in sorted(found - {exact}, key=len, reverse=True):
        weight = OTHER_SPELLING if name == joined_form(exact) else SHORT_FORM
        names.append(QueryTerm(term=name, weight=weight, is_identifier=True))
    return tuple(names)


def _as_prefix(group: Group) -> Group:
    typed = fold(group.text).strip(_EDGES)
    if len(typed) < LEAST_PREFIX:
        return group
    prefix = QueryTerm(term=typed, weight=0.8, is_identifier=bool(group.names), is_prefix=True)
    if group.names:
        return Group(text=group.text, names=(*group.names, prefix), words=group.words)
    return Group(text=group.text, words=(*group.words, prefix))
