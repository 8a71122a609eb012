"""Does a value look like a secret? Judged by its shape alone."""

from __future__ import annotations

import re
from itertools import groupby

from detect_secrets.filters.heuristic import (
    is_not_alphanumeric_string,
    is_prefixed_with_dollar_sign,
    is_sequential_string,
    is_templated_secret,
)

#: Shortest value that can pass for the output of a generator (characters).
SHORTEST_RANDOM = 12

#: Shortest password that is taken in data and connection strings (characters).
SHORTEST_PASSWORD = 8

#: A generator changes between upper case, lower case, digits and signs about every second character.
_LONGEST_MEAN_RUN = 2.6

#: What documentation and fixtures write where a secret would stand.
_EXAMPLE = re.compile(
    r"example|x{4}|\*{3}|\.{3}|your[-_]|redacted|placeholder|change[-_]?me|replace[-_]|insert[-_]|dummy|fake|sample",
    re.IGNORECASE,
)

#: Words in the passwords of fixtures and local databases. Hiding them protects nothing and breaks edits.
_FIXTURE = re.compile(
    r"passw|secret|token|test|admin|root|user|guest|demo|foo|bar|baz|abc|123|qwerty|default|local|hunter2|pass\b|pwd",
    re.IGNORECASE,
)

_CODE = re.compile(r"[(){}\[\]<>$]|->|::|^[./~]|^(?:https?|file):")


def is_example(value: str) -> bool:
    """A stand-in of documentation, such as the keys in AWS's own manual."""
    return _EXAMPLE.search(value) is not None or len(set(value)) < 5


def looks_random(value: str) -> bool:
    """As from a generator: long enough, letters and digits mixed, no words."""
    if len(value) < SHORTEST_RANDOM or not _mixed(value) or _is_stand_in(value):
        return False
    return len(value) / sum(1 for _ in groupby(value, key=_sort)) <= _LONGEST_MEAN_RUN


def looks_like_password(value: str) -> bool:
    """As a person chooses it: a letter and a digit, and not the words of fixtures."""
    if len(value) < SHORTEST_PASSWORD or not _mixed(value) or _is_stand_in(value):
        return False
    return _FIXTURE.search(value) is None or looks_random(value)


def _mixed(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _is_stand_in(value: str) -> bool:
    return (
        is_example(value)
        or _CODE.search(value) is not None
        or is_templated_secret(value)
        or is_prefixed_with_dollar_sign(value)
        or is_sequential_string(value)
        or is_not_alphanumeric_string(value)
    )


def _sort(character: str) -> int:
    """Upper case, lower case, digit or sign."""
    if character.isdigit():
        return 0
    if character.isalpha():
        return 1 if character.isupper() else 2
    return 3
