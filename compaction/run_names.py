"""The identifiers that runs mention, found once per process. A run is a text without spaces (`references`).

A new session has thousands of runs that the process has not seen before. Most are words and identifiers,
which methods of strings recognize in a fraction of the time that a pattern takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
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


class RunNames:
    """The identifiers that runs mention.

    `named` maps the runs that mention identifiers to them; `plain` are the others, so that they can be
    skipped. When full, both are replaced and not cleared, because other threads may be reading them.
    """

    def __init__(self) -> None:
        self.named: dict[bytes, tuple[str, ...]] = {}
        self.plain: set[bytes] = set()

    def __getitem__(self, run: bytes) -> tuple[str, ...]:
        names = self.named.get(run)
        return names_of_run(run) if names is None else names

    def learn(self, runs: Iterable[bytes]) -> Mapping[bytes, tuple[str, ...]]:
        """Classify those of the runs that are new. Return the identifiers of all that mention any."""
        named, plain = self.named, self.plain
        new = set(filterfalse(named.__contains__, runs))
        if len(named) + len(plain) + len(new) > _MAX_RUNS:
            self.forget()
        for run in new:
            if len(run) > MAX_LENGTH:
                continue
            if run.isalpha() and (run.islower() or run.istitle() or run.isupper()):
                plain.add(run)
                continue
            text = run.decode()
            word = text.strip(":").rstrip(".")  # most runs are a word that a colon or full stop follows
            if not word.isascii() or "h_" in word or ":" in word:
                names = _names_of_text(text)
            elif word.isidentifier():
                names = (word,) if len(word) > 2 and _is_shaped_identifier(word) else ()
            elif "/" in word:
                names = _names_of_text(text) if text[0] == ":" else _path_names(word)  # perhaps `://`
            elif word.replace(".", "").isidentifier():
                names = _dotted_names(word)
            else:
                names = _word_names(word)
            if names:
                named[run] = names
            else:
                plain.add(run)
        return named

    def forget(self) -> None:
        self.named, self.plain = {}, set()
        _cached_path_names.cache_clear()


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
    return _cached_path_names(word) if "/" in word else _bare_names(_bare(word))


def _path_names(word: str) -> tuple[str, ...]:
    """Return the identifiers in a path: `a/b/c.py` mentions itself and `c.py`; `and/or` is two words."""
    name = _bare(word)
    parent, slash, last = name.rpartition("/")
    if not slash:
        return _bare_names(name)
    if len(name) < 3 or (
        "/" not in parent
        and not name.startswith(("/", "~", "@"))
        and not _is_shaped(name)
        and "." not in last
    ):
        return ()
    return (name, last) if _is_file_name(last) else (name,)


#: Runs of many lines begin with the same path: `src/pool.py:12:`, `src/pool.py:13:`.
_cached_path_names = lru_cache(1 << 13)(_path_names)


def _bare(word: str) -> str:
    """Return a word without the punctuation around it."""
    name = word.strip("-").rstrip(".@/-~").removeprefix("./")
    if "-" in name and "." in name:
        name = _GREP_CONTEXT.sub(r".\1", name)  # `c.py-12-` is a context line of grep
    return name


def _bare_names(name: str) -> tuple[str, ...]:
    """Return the identifiers in a word without colons, slashes and the punctuation around it."""
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


def _is_file_name(text: str) -> bool:
    """Whether the last part of a path is a file name. Most are recognized without the pattern."""
    stem, dot, ending = text.rpartition(".")
    if not dot:
        return False
    if stem.isidentifier() and ending.isalpha() and ending.isascii() and len(ending) <= 10:
        return True
    return _FILE_NAME.fullmatch(text) is not None


def _dotted_names(name: str) -> tuple[str, ...]:
    """Return the identifiers in a dotted name: `pool.PoolError` mentions itself and `PoolError`."""
    dots = name.count(".")
    if len(name) < 4 or (len(name) <= 2 * dots + 1 and max(map(len, name.split("."))) < 2):
        return ()
    last = name.rpartition(".")[2]
    if len(last) <= 2 or last[0].isdigit():
        return (name,)
    is_shaped = _is_shaped_identifier(last) if last.isidentifier() else _is_shaped(last)
    return (name, last) if is_shaped else (name,)


def _is_shaped_identifier(word: str) -> bool:
    """Return `_is_shaped` of an identifier of at least three characters, mostly without the pattern."""
    if "_" in word:
        stripped = word.strip("_")
        if "_" in stripped or (word[0] == "_" and len(stripped) >= 2):
            return True
    elif word.isascii():
        if not word.isalpha():
            return True  # it contains a digit
        if word.islower() or word.istitle() or word.isupper():
            return False
        if word[-1].isupper() or word[-2].islower():
            return True
    return not _is_word(word) and _SHAPED.search(word) is not None


def _is_shaped(name: str) -> bool:
    """Whether a word has the shape of an identifier: snake_case, camelCase, or letters with digits."""
    return not _is_word(name) and _SHAPED.search(name) is not None and not name.isdigit()


def _is_word(name: str) -> bool:
    """Whether a name consists of letters in the usual case."""
    return name.isalpha() and (name.islower() or name.istitle() or name.isupper())
