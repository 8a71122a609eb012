"""The identifiers that runs mention, found once per process. A run is a text without spaces.

A new session has thousands of runs that the process has not seen before. Most are words and identifiers,
which methods of strings recognize in a fraction of the time that a pattern takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain

from compaction.identifiers.marks import MARKS

#: A string that looks like a handle (see `contains_handle`).
HANDLE = re.compile(r"\bh_[a-z0-9]{10}\b")
EMAIL = re.compile(r"[\w.-]+@[\w-]+(?:\.[\w-]+)+")
NUMBER = re.compile(r"-?(?:\d{3,}|\d+\.\d+)")
#: A duration (`14ms`, `3.540s`), the end of an ANSI sequence (`39m`), an address of sed (`660p`), a range of
#: lines (`113-119`), or a number with a word (`24-bit`, or `180-func` in a context line of grep).
_MEASURE = re.compile(r"\d+(?:\.\d+)?(?:[mnu]?s|[mp])|\d+-[A-Za-z]+|\d{1,3}-\d{1,3}")

#: Maximum length of a name. Longer runs are data (base64, minified code).
MAX_LENGTH = 200

_NOT_ASCII_RUN = re.compile(rf"[^\w{MARKS}@~./:-]+")
_SHAPED = re.compile(r"[^\W_]_+[^\W_]|^_+[^\W_]{2}|\d|[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}")
_FILE_NAME = re.compile(rf"(?:\.?[\w{MARKS}-]+(?:\.[\w{MARKS}-]+)*)?\.[A-Za-z][A-Za-z0-9]{{0,9}}")
_GREP_CONTEXT = re.compile(r"\.([A-Za-z]{1,5})-\d+(?:-.*)?$")

#: Maximum number of runs in the cache. A long session has about 20,000.
_MAX_RUNS = 1 << 17


class RunNames(dict[bytes, tuple[str, ...]]):
    """The identifiers that runs mention, by run, each classified on first use; none for plain words."""

    def __missing__(self, run: bytes) -> tuple[str, ...]:
        if len(run) > MAX_LENGTH:
            return ()
        if run.isalpha() and (run.islower() or run.istitle() or run.isupper()):
            names: tuple[str, ...] = ()
        elif run.isalnum():
            word = run.decode()
            names = (word,) if len(word) > 2 and _is_shaped_run(word) and not _MEASURE.fullmatch(word) else ()
        else:
            names = self._names_of_text(run.decode())
        if len(self) >= _MAX_RUNS:
            self.clear()
        self[run] = names
        return names

    def _names_of_text(self, text: str) -> tuple[str, ...]:
        """Return the identifiers in a run that contains characters other than ASCII letters and digits."""
        if not text.isascii() and len(pieces := _NOT_ASCII_RUN.split(text)) > 1:
            return self._names_of_all(pieces)
        if "://" in text:
            return _without_handles((text.rstrip(".:/-"),) if not text.endswith("://") else ())
        bare = text.strip(":-").rstrip(".:@/~-")
        if len(bare) < len(text):
            return self[bare.encode()]
        if ":" in text:
            return self._names_of_all(text.split(":"))
        names = _names_of_word(text)
        return _without_handles(names) if "h_" in text else names

    def _names_of_all(self, pieces: Iterable[str]) -> tuple[str, ...]:
        return tuple(chain.from_iterable(self[piece.encode()] for piece in pieces))


def _without_handles(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if not HANDLE.search(name))


def _names_of_word(word: str) -> tuple[str, ...]:
    """Return the identifiers in a word without colons: itself, and its short form if it has one."""
    if word.isidentifier():
        return (word,) if len(word) > 2 and _is_shaped_identifier(word) else ()
    return _path_names(word) if "/" in word else _bare_names(_without_grep_context(word))


def _path_names(word: str) -> tuple[str, ...]:
    """Return the identifiers in a path: `a/b/c.py` mentions itself and `c.py`; `and/or` is two words."""
    name = _without_grep_context(word.removeprefix("./"))
    parent, slash, last = name.rpartition("/")
    if not slash:
        return _bare_names(name)
    if len(name) < 3 or (
        "/" not in parent
        and "." not in last
        and not name.startswith(("/", "~", "@"))
        and not _is_shaped(name)
    ):
        return ()
    return (name, last) if _is_file_name(last) else (name,)


def _without_grep_context(name: str) -> str:
    """Return `c.py` for `c.py-12-`, which is a context line of grep."""
    return _GREP_CONTEXT.sub(r".\1", name) if "-" in name and "." in name else name


def _bare_names(name: str) -> tuple[str, ...]:
    """Return the identifiers in a word without colons, slashes and the punctuation around it."""
    if "@" in name and "@" in name.lstrip("@"):
        return (name,) if EMAIL.fullmatch(name) else ()
    name = name.lstrip("@~")
    if len(name) < 3:
        return ()
    if not name[0].isalpha():
        if NUMBER.fullmatch(name):
            return (name,)
        if _MEASURE.fullmatch(name):
            return ()
    if "." in name:
        return _dotted_names(name)
    return (name,) if _is_shaped(name) or name.count("-") >= 2 else ()


def _dotted_names(name: str) -> tuple[str, ...]:
    """Return the identifiers in a dotted name: `pool.PoolError` mentions itself and `PoolError`."""
    last = name.rpartition(".")[2]
    if len(last) > 2:
        return (name, last) if not last[0].isdigit() and _is_shaped(last) else (name,)
    is_abbreviation = len(name) < 4 or max(map(len, name.split("."))) < 2
    return () if is_abbreviation else (name,)


def _is_file_name(text: str) -> bool:
    """Whether the last part of a path is a file name. Most are recognized without the pattern."""
    stem, dot, ending = text.rpartition(".")
    if not dot:
        return False
    if stem.isidentifier() and ending.isalpha() and ending.isascii() and len(ending) <= 10:
        return True
    return _FILE_NAME.fullmatch(text) is not None


def _is_shaped_run(run: str) -> bool:
    """Whether ASCII letters in mixed case, or with digits, have the shape of an identifier or a number."""
    return not run[-2:].istitle() or _SHAPED.search(run) is not None


def _is_shaped_identifier(word: str) -> bool:
    """Return `_is_shaped` of an identifier, mostly without the pattern."""
    stripped = word.strip("_")
    if "_" in stripped or (word[0] == "_" and len(stripped) >= 2):
        return True
    return _is_shaped(word)


def _is_shaped(name: str) -> bool:
    """Whether a word has the shape of an identifier: snake_case, camelCase, or letters with digits."""
    if name.isalpha():
        if name.islower() or name.istitle() or name.isupper():
            return False
        if name.isascii():
            return _is_shaped_run(name)
    return _SHAPED.search(name) is not None and not name.isdigit()
