"""The terms of a text, which the index stores and queries look up.

A text has two kinds of terms, in one namespace:

- **words**: runs of letters and digits in lower case, without function words. Words of ASCII letters are
  stemmed. `maxPoolSize` and `max_pool_size` are the words `max`, `pool` and `size`. Scripts without spaces
  are indexed by pairs of characters.
- **identifiers** (`compaction.identifiers`): paths, names, ids, versions and numbers in lower case, with
  their short forms: `src/db/pool.py` is also `pool.py`. Names of several parts have a joined form, which
  their spellings share: `maxpoolsize`.

Works without knowing the language. Occurrences of a word are counted; an identifier counts once.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from compaction.identifiers.extract import references
from compaction.identifiers.marks import MARKS
from search.stemming import stem

#: Longer texts (characters) are indexed by their distinct terms, because the counts are not informative.
GIANT = 20_000
#: Maximum length of a term. Longer ones are data and are truncated.
MAX_TERM = 120
#: Maximum count of a word.
MAX_COUNT = 255

#: A run of letters and digits with their combining marks.
RUN = re.compile(rf"[^\W_]+(?:[{MARKS}]+[^\W_]*)*")
#: Replaces every ASCII character that is not a letter or digit with a space.
_SPACED = bytes(code if chr(code).isalnum() else 32 for code in range(128)).ljust(256)
_CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)
_JOINTS = re.compile(r"[_-]+")
#: Maximum length of a run of letters and digits. Longer ones are data, such as base64.
_MAX_RUN = 64
_MAX_DIGITS = 20
_CACHED_RUNS = 1 << 17
_CACHED_NAMES = 1 << 15

#: Function words, which are not indexed.
STOP_WORDS = frozenset(
    """
    a about after again all also am an and any are as at be because been before being both but by
    can could did do does doing done don during each few for from further get gets getting got had
    has have having he her here hers him his how if in into is it its itself just let me might more
    most my no nor not now of off on once only or other our ours out over own re same she should so
    some such than that the their theirs them then there these they this those through to too under
    until up us ve very was we were what when where which while who whom why will with would you
    your yours ll
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Analysis:
    """The terms of a text with their counts, and its length in words."""

    counts: Mapping[str, int]
    length: int


class _Runs(dict[str, tuple[str, ...]]):
    """Maps a run of letters and digits to its words, computed on first use."""

    def __missing__(self, run: str) -> tuple[str, ...]:
        if len(self) >= _CACHED_RUNS:
            self.clear()
        words = self[run] = _words_of_run(run)
        return words


_RUNS = _Runs()


def analyze(text: str) -> Analysis:
    """Return the terms of a text."""
    counts: dict[str, int] = {}
    length = 0
    for run, count in Counter(_runs(text)).items():
        for word in _RUNS[run]:
            counts[word] = counts.get(word, 0) + count
            length += count
    if len(text) > GIANT:
        counts = dict.fromkeys(counts, 1)
    for name in identifiers(text):
        counts.setdefault(name, 1)
    if counts and max(counts.values()) > MAX_COUNT:
        return Analysis({term: min(count, MAX_COUNT) for term, count in counts.items()}, length)
    return Analysis(counts, length)


def identifiers(text: str) -> set[str]:
    """Return the identifiers that a text mentions, with their short and joined forms, in lower case."""
    return set().union(*map(_name_terms, references(text)))


@lru_cache(_CACHED_NAMES)
def _name_terms(name: str) -> tuple[str, ...]:
    """Return an identifier and its joined form as terms."""
    folded = fold(name)
    joined = joined_form(folded)
    return (folded[:MAX_TERM],) if joined is None else (folded[:MAX_TERM], joined)


def words(text: str) -> list[str]:
    """Return the words of a text in order, without function words."""
    return [word for run in _runs(text) for word in _RUNS[run]]


def _runs(text: str) -> list[str]:
    """Split a text into runs of letters and digits. In ASCII texts, this takes a fraction of the time."""
    if text.isascii():
        return text.encode().translate(_SPACED).decode().split()
    return RUN.findall(text)


def joined_form(name: str) -> str | None:
    """Return a folded name of several parts without separators, or None for other identifiers."""
    if ("_" not in name and "-" not in name) or not name.isascii():
        return None
    joined = _JOINTS.sub("", name)
    return joined[:MAX_TERM] if joined.isalnum() and not joined.isdigit() else None


def fold(text: str) -> str:
    """Remove differences that a search ignores: letter case and accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if not unicodedata.combining(c)))


def _words_of_run(run: str) -> tuple[str, ...]:
    if len(run) > _MAX_RUN:
        return tuple(_unspaced(run))
    if not run.isascii():
        run = unicodedata.normalize("NFC", run)
        return tuple(_unspaced(run)) or _words_of_folded(fold(run))
    if run.isdigit():
        return (run,) if 2 <= len(run) <= _MAX_DIGITS else ()
    if not run.isalpha():
        return (run.lower(),)
    if run.islower() or run.isupper() or run.istitle():
        return _stemmed([run])
    return _stemmed(_CAMEL.findall(run))


def _words_of_folded(word: str) -> tuple[str, ...]:
    return _stemmed([word]) if word.isascii() and word.isalpha() else (word,)


def _stemmed(pieces: Iterable[str]) -> tuple[str, ...]:
    lowered = (piece.lower() for piece in pieces)
    return tuple(stem(word) for word in lowered if len(word) > 1 and word not in STOP_WORDS)


def _unspaced(run: str) -> list[str]:
    """Return the pairs of adjacent characters in parts of a run in scripts without spaces."""
    found = []
    for part in _UNSPACED.findall(run):
        found += [part] if len(part) == 1 else [part[at : at + 2] for at in range(len(part) - 1)]
    rest = fold(_UNSPACED.sub("", run))
    return found + ([rest] if found and rest else [])
