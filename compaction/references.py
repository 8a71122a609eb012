"""The identifiers that a text mentions, which later messages may need again.

An identifier is a string that cannot be guessed once it is lost: a path or file name, a qualified,
snake-case, camel-case or kebab-case name, an id or hash, a version, a number with at least three digits or a
decimal point, an email address, a URL. Plain words do not count, because their form does not distinguish the
class `Session` from the word "Session".

A path also mentions its file name, and a qualified name its last part, because people and models shorten them
this way. Line numbers in the margin of a file listing are not mentions. Neither is text that looks like a
handle: a prompt must not present a handle from an output as a genuine one.

For speed, texts are split into runs of characters in C, and each distinct run is classified once per process.
Four out of five are plain words, which a single set lookup skips. `compaction.text_names` keeps the results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from itertools import chain, filterfalse

import orjson

from compaction.messages import JSON


class Kind(StrEnum):
    """The kind of an identifier."""

    URL = "url"
    EMAIL = "email"
    PATH = "path"
    NUMBER = "number"
    ID = "id"
    NAME = "name"


_RUN_BYTES = bytes(c if c >= 128 or chr(c).isalnum() or chr(c) in "_@~./:-" else 32 for c in range(256))
_NOT_ASCII_RUN = re.compile(r"[^\w@~./:-]+")
_MARGIN = re.compile(r"\n *\d+(?:→|\t|:(?=\s))")  # begins with a literal, so the search is fast
_ESCAPE = re.compile(r"\\[nrt]")
_EMAIL = re.compile(r"[\w.-]+@[\w-]+(?:\.[\w-]+)+")
_NUMBER = re.compile(r"-?(?:\d{3,}|\d+\.\d+)")
_SHAPED = re.compile(r"[^\W_]_+[^\W_]|^_+[^\W_]{2}|\d|[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}")
_HANDLE = re.compile(r"\bh_[a-z0-9]{10}\b")
_FILE_NAME = re.compile(r"(?:\.?[\w-]+(?:\.[\w-]+)*)?\.[A-Za-z][A-Za-z0-9]{0,9}")
_GREP_CONTEXT = re.compile(r"(?<=\.)([A-Za-z]{1,5})-\d+(?:-.*)?$")

#: Endings that distinguish a file name from an attribute: `pool.py` is a file, `pool.size` is not.
_FILE_ENDING = re.compile(
    r"\.(?:bash|bat|cc?|cfg|conf|cpp|cs|css|csv|diff|env|fs|go|gz|h|hpp|html?|in[ic]|ipynb|java|jpe?g|[cm]?js|jsonl?"
    r"|jsx|kt|lock|log|lua|md|mod|patch|php|pdf|pl|png|po|proto|pyi?|rb|rs|rst|s?css|sh|sql|sum|svelte|svg"
    r"|swift|tar|tex|tf|toml|tsx?|tsv|txt|vue|xml|ya?ml|zip|zsh)$"
)

#: A margin is removed only if a numbered line begins within this many characters.
_MARGIN_WINDOW = 400

#: Maximum length of a name. Longer runs are data (base64, minified code).
MAX_LENGTH = 200

#: Maximum number of classified runs in the cache. A long session has about 20,000.
_CLASSIFIED_RUNS = 1 << 17


class _NameCache(dict[bytes, tuple[str, ...]]):
    """Maps a run to the identifiers that it mentions, computed on first use.

    Runs without identifiers are stored separately in `plain`, so that `_naming_runs` can skip them. Both are
    cleared when full.
    """

    def __init__(self) -> None:
        self.plain: set[bytes] = set()

    def __missing__(self, run: bytes) -> tuple[str, ...]:
        names = _names(run)
        if len(run) <= MAX_LENGTH:
            if len(self) + len(self.plain) >= _CLASSIFIED_RUNS:
                self.forget()
            if names:
                self[run] = names
            else:
                self.plain.add(run)
        return names

    def forget(self) -> None:
        self.clear()
        self.plain.clear()


_NAMES = _NameCache()


def references(*texts: str) -> frozenset[str]:
    """Return the identifiers that the texts mention. One call is faster than one per text."""
    return frozenset(chain.from_iterable(map(_NAMES.__getitem__, set(_naming_runs(*texts)))))


@lru_cache(_CLASSIFIED_RUNS)
def forms(name: str) -> frozenset[str]:
    """Return an identifier and its short forms: `src/pool.py` and `pool.py`."""
    if name.isascii() and name.isidentifier():
        return frozenset((name,))
    return references(name) | {name}


def mentions(text: str) -> Iterator[str]:
    """Yield the identifiers of `text` in order, once per mention."""
    return chain.from_iterable(map(_NAMES.__getitem__, _naming_runs(text)))


def forget() -> None:
    """Clear the caches of the process, for benchmarks of a session's first plan."""
    _NAMES.forget()
    forms.cache_clear()


def argument_text(arguments: str) -> str:
    """Return the strings and numbers in JSON arguments, one per line, or the text if it is not JSON."""
    try:
        return "\n".join(_leaves(orjson.loads(arguments)))
    except orjson.JSONDecodeError:
        return arguments


def contains_handle(text: str) -> bool:
    """Return whether a text contains a string that looks like a handle and must not be quoted."""
    return "h_" in text and _HANDLE.search(text) is not None


def without_handles(text: str, substitute: str) -> str:
    """Replace strings that look like handles with `substitute`."""
    return _HANDLE.sub(substitute, text) if "h_" in text else text


def kind_of(name: str) -> Kind:
    """Return the kind of an identifier."""
    if "://" in name:
        return Kind.URL
    if "@" in name and _EMAIL.fullmatch(name):
        return Kind.EMAIL
    if "/" in name or _FILE_ENDING.search(name):
        return Kind.PATH
    if _NUMBER.fullmatch(name):
        return Kind.NUMBER
    return Kind.ID if any(map(str.isdigit, name)) else Kind.NAME


def runs(text: str) -> list[bytes]:
    """Split a text at every ASCII character that identifiers cannot contain. The runs are UTF-8."""
    return text.encode("utf-8", "replace").translate(_RUN_BYTES).split()


def _naming_runs(*texts: str) -> Iterator[bytes]:
    """Yield the runs of the texts, except those known to mention no identifier."""
    return filterfalse(_NAMES.plain.__contains__, runs("".join(map(_plain, texts))))


def _plain(text: str) -> str:
    """Prepend a line break, remove margin line numbers, and replace escaped line breaks with spaces."""
    text = "\n" + text
    if _MARGIN.search(text, 0, _MARGIN_WINDOW + 1):
        text = _MARGIN.sub("\n", text)
    return _ESCAPE.sub(" ", text) if "\\" in text else text


def _leaves(value: JSON) -> Iterator[str]:
    """Yield the strings and numbers of a JSON value in order. Does not recurse, as nesting may be deep."""
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, dict):
            left.extend(reversed(item.values()))
        elif isinstance(item, list):
            left.extend(reversed(item))
        elif item is not None and not isinstance(item, bool):
            yield str(item)


def _names(run: bytes) -> tuple[str, ...]:
    """Return the identifiers that one run of characters mentions; none for plain words."""
    if not 3 <= len(run) <= MAX_LENGTH or (run.isalpha() and (run.islower() or run.istitle())):
        return ()
    if run.isascii():
        return _piece_names(run.decode())
    return tuple(chain.from_iterable(map(_piece_names, _NOT_ASCII_RUN.split(run.decode()))))


def _piece_names(piece: str) -> tuple[str, ...]:
    if ":" not in piece:
        return _word_names(piece)
    if "://" in piece:
        return (piece.rstrip(".:/-"),) if not piece.endswith("://") else ()
    return tuple(chain.from_iterable(map(_word_names, filter(None, piece.split(":")))))


def _word_names(word: str) -> tuple[str, ...]:
    """Return the identifiers in a word without colons: itself, and its short form if it has one."""
    # Fast paths for most words; the rest handles other characters.
    if word.isidentifier():
        is_handle = word.startswith("h_") and _HANDLE.fullmatch(word)
        return (word,) if len(word) >= 3 and _is_shaped_identifier(word) and not is_handle else ()
    if word.isdecimal():
        return (word,) if len(word) >= 3 else ()
    name = word.strip("-").rstrip(".@/-~").removeprefix("./")
    if "." in name and "-" in name:
        name = _GREP_CONTEXT.sub(r"\1", name)  # `c.py-12-` is a context line of grep
    if "/" in name:
        return _path_names(name) if len(name) > 2 else ()
    if "@" in name.lstrip("@"):
        return (name,) if _EMAIL.fullmatch(name) else ()
    name = name.lstrip("@~") if not name.startswith(".") else name
    if len(name) < 3:
        return ()
    if _NUMBER.fullmatch(name):
        return (name,)
    if "." in name:
        return _dotted_names(name)
    return (name,) if _is_shaped(name) or name.count("-") >= 2 else ()


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
    return (name, last) if _FILE_NAME.fullmatch(last) else (name,)


def _dotted_names(name: str) -> tuple[str, ...]:
    """Return the identifiers in a dotted name: `pool.PoolError` mentions itself and `PoolError`."""
    parts = [part for part in name.split(".") if part]
    if not parts or max(map(len, parts)) < 2 or len(name) < 4:
        return ()
    last = parts[-1]
    return (name, last) if len(last) > 2 and not last[0].isdigit() and _is_shaped(last) else (name,)


def _is_shaped_identifier(word: str) -> bool:
    """Return `_is_shaped` of an identifier. Underscores are found faster without the pattern."""
    if "_" in word:
        stripped = word.strip("_")
        if "_" in stripped or (word[0] == "_" and len(stripped) >= 2):
            return True
    return _SHAPED.search(word) is not None


def _is_shaped(name: str) -> bool:
    """Whether a word has the shape of an identifier: snake_case, camelCase, or letters with digits."""
    return _SHAPED.search(name) is not None and not name.isdigit()
