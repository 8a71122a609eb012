"""The redaction settings of a project: its key and its custom patterns, which run in RE2, in linear time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from redaction.patterns import BadPattern, pattern_compile
from redaction.spans import Rule, Span

#: Limits of custom patterns.
MAX_PATTERNS = 20
MAX_PATTERN_LENGTH = 500

_KIND = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


class InvalidPatternError(ValueError):
    """A pattern is invalid; the message is the reason. Raised when patterns are set, never by a push."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraPattern:
    """A pattern in RE2 syntax. The secret is its first group, or the whole match if it has none."""

    kind: str
    pattern: str


def extra_rules(patterns: Sequence[ExtraPattern]) -> tuple[Rule, ...]:
    """Return the rules for custom patterns.

    Raises `InvalidPatternError` for too many or too long patterns, an invalid kind, syntax that RE2 does not
    support (look-around, back-references), or a pattern that matches the empty string.
    """
    if len(patterns) > MAX_PATTERNS:
        raise InvalidPatternError(f"at most {MAX_PATTERNS} patterns, not {len(patterns)}")
    return tuple(_rule(pattern.kind, pattern.pattern) for pattern in patterns)


@lru_cache(maxsize=512)
def _rule(kind: str, pattern: str) -> Rule:
    if not _KIND.fullmatch(kind):
        raise InvalidPatternError(f"{kind!r} is not a valid kind: use up to 40 characters of a-z, 0-9 and -")
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise InvalidPatternError(f"{kind}: at most {MAX_PATTERN_LENGTH} characters")
    try:
        regex = pattern_compile(pattern)
    except BadPattern as error:
        raise InvalidPatternError(f"{kind}: {error}") from error
    if regex.search("") is not None:
        raise InvalidPatternError(f"{kind}: matches the empty string, so it would match everywhere")
    group = min(1, regex.groups)

    def find(text: str) -> list[Span]:
        return [match.span(group) for match in regex.finditer(text) if match.span(group)[0] >= 0]

    return Rule(kind=kind, anchor=pattern, find=find)


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """The key and the custom patterns of a project. Picklable, for use in other processes."""

    key: bytes
    patterns: tuple[ExtraPattern, ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        return extra_rules(self.patterns)
