"""Rules, and the boundaries of the secrets that they match."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import re2

from redaction.shape import is_example, looks_random

Span = tuple[int, int]

#: Characters after a match of fixed length that belong to the token. Redacting too much is safer than too
#: little.
_TOKEN_TAIL = re.compile(r"[A-Za-z0-9_-]*")

#: A letter that ends an escape sequence (`\n`, `\u001b`, a color code) is not part of the following word.
_ESCAPE_END = re.compile(r"(?:\\[bfnrt]|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|%[0-9A-F]{2}|\[[\d;]{1,8}m)\Z")
_LONGEST_ESCAPE = 10

#: Maximum characters of a word to which a token is glued, and the alphabet of longer ones: base64.
_LONGEST_WORD = 24
_ENCODED = re.compile(r"[A-Za-z0-9+/]+")

#: Hexadecimal digits, as of a checksum. The prefix of some tokens consists of them, too, such as `4b1d`.
_DIGEST = re.compile(r"[0-9a-f]+|[0-9A-F]+")

#: Characters of a token that contain its prefix.
_PREFIX = 6

#: Characters that some library patterns match before the secret, and characters that terminate it.
_LEADING = " \t\r\n=:\"'"
_END = re.compile(r"[\s\"'`]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of secret.

    `anchor` is RE2 syntax for raw JSON: it matches wherever `find` could match the decoded text, and possibly
    more. `find` yields the spans of secrets in a decoded text.
    """

    kind: str
    anchor: str
    find: Callable[[str], Iterable[Span]]


def compiled(pattern: str) -> Any:
    """Compile a pattern with RE2, or with `re` if it uses look-around."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return re.compile(pattern)


def tokens(
    pattern: Any, *, group: int = 0, glued: bool = False, accepts: Callable[[str], bool] | None = None
) -> Callable[[str], Iterator[Span]]:
    """Return a function that finds tokens, trimmed and complete.

    A token within a longer word counts only with `glued` (the prefix is distinctive), if it looks random and
    is not part of encoded data. A match of hexadecimal digits alone is part of a checksum. `accepts` decides
    by the token itself.
    """

    def find(text: str) -> Iterator[Span]:
        for match in pattern.finditer(text):
            start, end = _trimmed(text, *match.span(group))
            token = text[start:end]
            if not token or is_example(token) or (accepts is not None and not accepts(token)):
                continue
            if _DIGEST.fullmatch(match.group()):
                continue
            if begins_word(text, start) or (
                glued and looks_random(token) and not _in_data(text, start, token)
            ):
                yield start, _TOKEN_TAIL.match(text, end).end()  # type: ignore[union-attr]

    return find


def _in_data(text: str, start: int, token: str) -> bool:
    """Return whether the characters before the token and its prefix may be encoded data, such as an image."""
    before = text[max(0, start - _LONGEST_WORD - 1) : start]
    return len(before) > _LONGEST_WORD and _ENCODED.fullmatch(before + token[:_PREFIX]) is not None


def begins_word(text: str, start: int) -> bool:
    if start == 0 or not text[start - 1].isalnum():
        return True
    return _ESCAPE_END.search(text, max(0, start - _LONGEST_ESCAPE), start) is not None


def _trimmed(text: str, start: int, end: int) -> Span:
    while start < end and text[start] in _LEADING:
        start += 1
    stop = _END.search(text, start, end)
    return start, stop.start() if stop else end
