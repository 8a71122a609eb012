"""The identifiers that a text mentions, which later messages may need again.

An identifier is a string that cannot be guessed once it is lost: a path or file name, a qualified,
snake-case, camel-case or kebab-case name, an id or hash, a version, a number with at least three digits or a
decimal point, an email address, a URL. Plain words do not count, because their form does not distinguish the
class `Session` from the word "Session".

A path also mentions its file name, and a qualified name its last part, because people and models shorten them
this way. Line numbers in the margin of a listing, ranges of lines, durations and closing tags do not count.
Text that looks like a handle does not either: a prompt must not present a handle from an output as a genuine
one.

For speed, texts are split into runs of characters in C, and each distinct run is classified once per process
(`compaction.identifiers.runs`). `compaction.identifiers.texts` keeps the results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from itertools import chain

import orjson

from compaction.identifiers.runs import EMAIL, HANDLE, NUMBER, RunNames
from compaction.messages import JSON
from compaction.utf8 import utf8


class Kind(StrEnum):
    """The kind of an identifier."""

    URL = "url"
    EMAIL = "email"
    PATH = "path"
    NUMBER = "number"
    ID = "id"
    NAME = "name"


_RUN_BYTES = bytes(c if c >= 128 or chr(c).isalnum() or chr(c) in "_@~./:-" else 32 for c in range(256))
_MARGIN = re.compile(r"\n *+L?[0-9]++(?:→|\t|[:-](?=\s))")  # begins with a literal, so the search is fast
_CLOSING_TAG = re.compile(r"</(?=[\w:.-]+>)")
_ESCAPE = re.compile(r"\\[nrt]")

#: Endings that distinguish a file name from an attribute: `pool.py` is a file, `pool.size` is not.
_FILE_ENDING = re.compile(
    r"\.(?:bash|bat|cc?|cfg|conf|cpp|cs|css|csv|diff|env|fs|go|gz|h|hpp|html?|in[ic]|ipynb|java|jpe?g|[cm]?js|jsonl?"
    r"|jsx|kt|lock|log|lua|md|mod|patch|php|pdf|pl|png|po|proto|pyi?|rb|rs|rst|s?css|sh|sql|sum|svelte|svg"
    r"|swift|tar|tex|tf|toml|tsx?|tsv|txt|vue|xml|ya?ml|zip|zsh)$"
)

#: A margin is removed only if a numbered line begins within this many characters.
_MARGIN_WINDOW = 400

#: Number of names whose forms a process remembers.
_REMEMBERED_FORMS = 1 << 16

_NAMES = RunNames()


def references(*texts: str) -> frozenset[str]:
    """Return the identifiers that the texts mention. One call is faster than one per text."""
    found = set(runs("".join(map(_plain, texts))))
    return frozenset(chain.from_iterable(map(_NAMES.__getitem__, found)))


def forms(name: str) -> frozenset[str]:
    """Return an identifier and its short forms: `src/pool.py` and `pool.py`."""
    return short_forms(name) | {name}


@lru_cache(_REMEMBERED_FORMS)
def short_forms(name: str) -> frozenset[str]:
    """Return the short forms of an identifier. Most have none."""
    if name.isascii() and name.isidentifier():
        return frozenset()
    if name.isascii() and len(found := runs(name)) == 1 and len(found[0]) == len(name):
        return frozenset(_NAMES[found[0]]) - {name}
    return references(name) - {name}


def mentions(text: str) -> Iterator[str]:
    """Yield the identifiers of `text` in order, once per mention."""
    return chain.from_iterable(filter(None, map(_NAMES.__getitem__, runs(_plain(text)))))


def forget() -> None:
    """Clear the caches of the process, for benchmarks of a session's first plan."""
    _NAMES.clear()
    short_forms.cache_clear()


def argument_text(arguments: str) -> str:
    """Return the strings and numbers in JSON arguments, one per line, or the text if it is not JSON."""
    try:
        return "\n".join(_leaves(orjson.loads(arguments)))
    except orjson.JSONDecodeError:
        return arguments


def contains_handle(text: str) -> bool:
    """Return whether a text contains a string that looks like a handle and must not be quoted."""
    return "h_" in text and HANDLE.search(text) is not None


def without_handles(text: str, substitute: str) -> str:
    """Replace strings that look like handles with `substitute`."""
    return HANDLE.sub(substitute, text) if "h_" in text else text


def kind_of(name: str) -> Kind:
    """Return the kind of an identifier."""
    if "://" in name:
        return Kind.URL
    if "@" in name and EMAIL.fullmatch(name):
        return Kind.EMAIL
    if "/" in name or _FILE_ENDING.search(name):
        return Kind.PATH
    if NUMBER.fullmatch(name):
        return Kind.NUMBER
    return Kind.ID if any(map(str.isdigit, name)) else Kind.NAME


def runs(text: str) -> list[bytes]:
    """Split a text at every ASCII character that identifiers cannot contain. The runs are UTF-8."""
    return utf8(text).translate(_RUN_BYTES).split()


def _plain(text: str) -> str:
    """Prepend a line break, remove margin line numbers, and replace escaped line breaks with spaces."""
    text = "\n" + text
    if _MARGIN.search(text, 0, _MARGIN_WINDOW + 1):
        text = _MARGIN.sub("\n", text)
    if "</" in text:
        text = _CLOSING_TAG.sub("<", text)
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
