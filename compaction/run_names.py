"""The identifiers that runs mention, found once per process. A run is a text without spaces (`references`).

A new session has thousands of runs that the process has not seen before. Most are words and identifiers,
which methods of strings recognize in a fraction of the time that a pattern takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain, filterfalse

#: A string that looks like a handle (see `contains_handle`).
HANDLE = re.compile(r"\bh_[a-z0-9]{10}\b")
EMAIL = re.compile(r"[\w.-]+@[\w-]+(?:\.[\w-]+)+")
NUMBER = re.compile(r"-?(?:\d{3,}|\d+\.\d+)")

#: Maximum length of a name. Longer runs are data (base64, minified code).
MAX_LENGTH = 200

_NOT_ASCII_RUN = re.compile(r"[^\w@~./:-]+")
_SHAPED = re.compile(r"[^\W_]_+[^\W_]|^_+[^\W_]{2}|\d|[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}")
_FILE_NAME = re.compile(r"(?:\.?[\w-]+(?:\.[\w-]+)*)?\.[A-Za-z][A-Za-z0-9]{0,9}")
_GREP_CONTEXT = re.compile(r"\.([A-Za-z]{1,5})-\d+(?:-.*)?$")

#: Maximum number of runs in the cache. A long session has about 20,000.
_MAX_RUNS = 1 << 17

#: Fewer new runs are classified one by one.
_MANY = 4


class RunNames(dict[bytes, tuple[str, ...]]):
    """Maps a run to the identifiers that it mentions, computed on first use.

    Runs without identifiers are stored separately in `plain`, so that they can be skipped. Both are cleared
    when full.
    """

    def __init__(self) -> None:
        self.plain: set[bytes] = set()

    def __missing__(self, run: bytes) -> tuple[str, ...]:
        names = names_of_run(run)
        if len(run) <= MAX_LENGTH:
            self._make_room(1)
            if names:
                self[run] = names
            else:
                self.plain.add(run)
        return names

    def learn(self, runs: Iterable[bytes]) -> None:
        """Classify those of the runs that are new, unless there are only a few."""
        new = set(filterfalse(self.__contains__, runs)).difference(self.plain)
        if len(new) < _MANY:
            return
        if max(map(len, new)) > MAX_LENGTH:
            new = {run for run in new if len(run) <= MAX_LENGTH}
        self._make_room(len(new))
        words = {run for run in new if run.isalpha() and (run.islower() or run.istitle() or run.isupper())}
        self.plain |= words
        for run in new - words:
            text = run.decode()
            word = text.strip(":").rstrip(".")  # most runs are a word that a colon or full stop follows
            if not word.isidentifier() or not word.isascii() or "h_" in word:
                names = _names_of_text(text)
            else:
                names = (word,) if len(word) > 2 and _is_shaped_identifier(word) else ()
            if names:
                self[run] = names
            else:
                self.plain.add(run)

    def forget(self) -> None:
        self.clear()
        self.plain.clear()
        _path_names.cache_clear()

    def _make_room(self, count: int) -> None:
        if len(self) + len(self.plain) + count > _MAX_RUNS:
            self.forget()


def names_of_run(run: bytes) -> tuple[str, ...]:
    """Return the identifiers that one run of characters mentions; none for plain words."""
    if not 3 <= len(run) <= MAX_LENGTH or (run.isalpha() and (run.islower() or run.istitle())):
        return ()
    return _names_of_text(run.decode())


def _names_of_text(text: str) -> tuple[str, ...]:
    """Return the identifiers that a run of at most `MAX_LENGTH` bytes mentions."""
    if text.isascii():
        names = _piece_names(text)
    else:
        names = tuple(chain.from_iterable(map(_piece_names, _NOT_ASCII_RUN.split(text))))
    return tuple(name for name in names if not HANDLE.search(name)) if "h_" in text else names


def _piece_names(piece: str) -> tuple[str, ...]:
    if ":" not in piece:
        return _word_names(piece)
    if "://" in piece:
        return (piece.rstrip(".:/-"),) if not piece.endswith("://") else ()
    words = list(filter(None, piece.split(":")))
    return _word_names(words[0]) if len(words) == 1 else tuple(chain.from_iterable(map(_word_names, words)))


def _word_names(word: str) -> tuple[str, ...]:
    """Return the identifiers in a word without colons: itself, and its short form if it has one."""
    # Fast paths for most words; the rest handles other characters.
    if word.isidentifier():
        return (word,) if len(word) >= 3 and _is_shaped_identifier(word) else ()
    if word.isdecimal():
        return (word,) if len(word) >= 3 else ()
    name = word.strip("-").rstrip(".@/-~").removeprefix("./")
    if "." in name and "-" in name:
        name = _GREP_CONTEXT.sub(r".\1", name)  # `c.py-12-` is a context line of grep
    if "/" in name:
        return _path_names(name) if len(name) > 2 else ()
    if "@" in name and "@" in name.lstrip("@"):
        return (name,) if EMAIL.fullmatch(name) else ()
    name = name.lstrip("@~")
    if len(name) < 3:
        return ()
    if not name[0].isalpha() and NUMBER.fullmatch(name):
        return (name,)
    if "." in name:
        return _dotted_names(name)
    return (name,) if _is_shaped(name) or name.count("-") >= 2 else ()


@lru_cache(1 << 13)  # runs of many lines begin with the same path: `src/pool.py:12:`, `src/pool.py-13-`
def _path_names(name: str) -> tuple[str, ...]:
    """Return the identifiers in a path: `a/b/c.py` mentions itself and `c.py`; `and/or` is two words."""
    last = name.rpartition("/")[2]
    if (
        name.count("/") < 2
        and not name.startswith(("/", "~", "@"))
        and not _is_shaped(name)
        and "." not in last
    ):
        return ()
    return (name, last) if "." in last and _FILE_NAME.fullmatch(last) else (name,)


def _dotted_names(name: str) -> tuple[str, ...]:
    """Return the identifiers in a dotted name: `pool.PoolError` mentions itself and `PoolError`."""
    dots = name.count(".")
    if len(name) < 4 or (len(name) <= 2 * dots + 1 and max(map(len, name.split("."))) < 2):
        return ()
    last = name.rpartition(".")[2]
    return (name, last) if len(last) > 2 and not last[0].isdigit() and _is_shaped(last) else (name,)


def _is_shaped_identifier(word: str) -> bool:
    """Return `_is_shaped` of an identifier. Underscores are found faster without the pattern."""
    if "_" in word:
        stripped = word.strip("_")
        if "_" in stripped or (word[0] == "_" and len(stripped) >= 2):
            return True
    return not _is_word(word) and _SHAPED.search(word) is not None


def _is_shaped(name: str) -> bool:
    """Whether a word has the shape of an identifier: snake_case, camelCase, or letters with digits."""
    return not _is_word(name) and _SHAPED.search(name) is not None and not name.isdigit()


def _is_word(name: str) -> bool:
    """Whether a name consists of letters in the usual case."""
    return name.isalpha() and (name.islower() or name.istitle() or name.isupper())
