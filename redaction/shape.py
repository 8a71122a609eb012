"""Decide by the form of a value whether it looks like a secret."""

from __future__ import annotations

import re
from string import ascii_uppercase, digits

#: Minimum length of a value that looks random (characters).
SHORTEST_RANDOM = 12

#: Minimum length of a password in data and connection strings (characters).
SHORTEST_PASSWORD = 8

#: Matches one run of a name: a word, an abbreviation or a number.
_RUN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")

#: Maximum mean length of the runs in a random value (characters). CamelCase names have at least 3.2; of
#: random base62 values, 1% with 20 characters and 0.2% with 40 do. Random base36 has a mean of 2.5.
_LONGEST_MEAN_RUN = 3.0
_LONGEST_MEAN_RUN_ONE_CASE = 3.2

#: Length from which a mixed-case value needs no second group of digits (characters).
_LONG_RANDOM = 20

_HEX = re.compile(r"[0-9a-f]{16,}|[0-9A-F]{16,}")
_DIGITS = re.compile(r"\d+")
_DIGIT, _LETTER = re.compile(r"[0-9]"), re.compile(r"[A-Za-z]")

#: Placeholders in documentation and fixtures.
_EXAMPLE = re.compile(
    r"example|x{4}|\*{3}|\.{3}|your[-_]|redacted|placeholder|change[-_]?me|replace[-_]|insert[-_]|dummy|fake|sample",
    re.IGNORECASE,
)

#: Words in passwords of fixtures and local databases. Redacting them has no benefit and breaks edits.
_FIXTURE = re.compile(
    r"passw|secret|token|test|admin|root|user|guest|demo|foo|bar|baz|abc|123|qwerty|default|local|hunter2|pass\b|pwd",
    re.IGNORECASE,
)

#: Sequences, in capitals, of which placeholders are a part.
_SEQUENCES = "\n".join(
    (
        f"{ascii_uppercase}{ascii_uppercase}{digits}+/",
        f"{digits}{ascii_uppercase}{ascii_uppercase}+/",
        f"{digits}{ascii_uppercase}" * 2,
        f"{digits}ABCDEFABCDEF" * 2,
        f"{ascii_uppercase}=/",
    )
)

_CODE = re.compile(r"[(){}\[\]<>$]|->|::|^[./~]|^--|^(?:https?|file):")


def is_example(value: str) -> bool:
    """Return whether this is a documentation placeholder, such as the keys in the AWS manual."""
    return _EXAMPLE.search(value) is not None or len(set(value)) < 5


def looks_random(value: str) -> bool:
    """Return whether the value looks generated: long, with letters and digits mixed unlike in names."""
    if len(value) < SHORTEST_RANDOM or not is_mixed(value) or _is_placeholder(value):
        return False
    core = "".join(filter(str.isalnum, value))
    if _HEX.fullmatch(core):
        return True
    groups = len(_DIGITS.findall(core))
    mean_run = len(core) / len(_RUN.findall(core))
    if core.lower() != core != core.upper():
        return mean_run <= _LONGEST_MEAN_RUN and (groups > 1 or len(core) >= _LONG_RANDOM)
    return mean_run <= _LONGEST_MEAN_RUN_ONE_CASE and groups >= max(3, len(core) // 10)


def looks_like_password(value: str) -> bool:
    """Return whether the value looks like a typical password: letters and digits, and no fixture words."""
    if len(value) < SHORTEST_PASSWORD or not is_mixed(value) or _is_placeholder(value):
        return False
    return _FIXTURE.search(value) is None or looks_random(value)


#: Passwords of examples and of local development databases.
_WELL_KNOWN = re.compile(
    r"(?:my|your|the|some)?[-_]?(?:pass(?:word|wd)?|pwd|pw|secret|token|postgres|mysql|root|admin|guest|user|test|dev|redis|rabbitmq)\w{0,3}|\d{1,5}",
    re.IGNORECASE,
)

#: Variables of shells, templates and format strings.
_TEMPLATE = re.compile(
    r"\$\{|\$\(|\{\{|%[sd]|%\(\w+\)|<[\w .-]+>|\{[\w.]*\}|`|\A(?:\$(?:env:)?\w+|%\w+%)\Z", re.IGNORECASE
)


def is_typed_secret(value: str) -> bool:
    """Return whether a value in the place of a password is one: neither a variable nor a known example."""
    return not (_TEMPLATE.search(value) or is_example(value) or _WELL_KNOWN.fullmatch(value))


def is_mixed(value: str) -> bool:
    """Return whether the value is ASCII and has digits and letters, as every secret of these rules."""
    return value.isascii() and _DIGIT.search(value) is not None and _LETTER.search(value) is not None


def _is_placeholder(value: str) -> bool:
    return is_example(value) or _CODE.search(value) is not None or value.upper() in _SEQUENCES
