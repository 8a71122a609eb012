"""Parse the filter expression of the session list, for example `agent:reader peak:>50k health:C,D`.

word                 matches title, id, agent, model or a tag
agent:name           also model: and tag:; quote names that contain spaces: agent:"code reader"
peak:>50k            also last:, turns: and billed:; >, <, or a number alone for "at least"
cost:>1.50           in dollars
health:C,D           any of these grades
compacted:yes        or no
active:2026-03-01..2026-03-05   days of the viewer; both ends are optional; also a single day
active:7d            within the last 7 days; also h for hours and w for weeks; also today
subagents:yes        list sub-agents as separate rows
meta.repo:web        the metadata has the key "repo" with this value
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, timedelta, tzinfo
from decimal import Decimal
from difflib import get_close_matches

from django.utils import timezone

from sessions.selectors.health.grades import GRADES
from sessions.selectors.lists.filters import Bound, SessionFilter, first_moment, last_moment

#: Prefix of the terms for metadata.
METADATA = "meta."
#: A pattern of the keys before a colon.
KEY = r"meta\.[\w.-]+|\w+"
_TERM = re.compile(rf'(?:({KEY}):)?(?:"([^"]*)"?|(\S+))')
#: Keys of the search, which the list does not have, with examples of values.
MESSAGE_KEYS: Mapping[str, str] = {"role": "user", "tool": "Bash", "file": "pool.py", "error": "yes"}
_BARE_KEY = re.compile(rf"({KEY}):")
_SIZE = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*([km]?)", re.IGNORECASE)
_RECENT = re.compile(r"(\d{1,4})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 24 * 7}
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}
#: The largest value that a column can store.
_MOST = 2_000_000_000
_MOST_DOLLARS = Decimal(10**9)

#: Columns of the terms that compare numbers.
FIGURES = {
    "peak": "peak_prompt_tokens",
    "last": "last_prompt_tokens",
    "turns": "turn_count",
    "cost": "cost_microusd",
    "billed": "billed",
}
_GRADES = {grade for grade, _ in GRADES}


#: Adds the condition of a term's value to a filter.
_Reader = Callable[[SessionFilter, str, tzinfo], SessionFilter]


class InvalidTerm(ValueError):
    """A term is invalid; the message contains an example of a valid one."""


def value_missing(key: str, example: str) -> InvalidTerm:
    """Return the error for a key without a value."""
    return InvalidTerm(f"Add a value directly after “{key}:”. Example: {key}:{example}")


def term_read(key: str, value: str, filters: SessionFilter, zone: tzinfo) -> SessionFilter | None:
    """Add the condition of one term, such as `agent:reader`. Return None if the key is unknown.

    Days are those of the time zone. Raises `InvalidTerm`.
    """
    if key.lower().startswith(METADATA):
        if not value:
            raise value_missing(key, "web")
        pair = (key[len(METADATA) :], value)
        return replace(filters, metadata_terms=(*filters.metadata_terms, pair))
    read = _READERS.get(key.lower())
    if read is None:
        return None
    if not value:
        raise value_missing(key, _EXAMPLES[key.lower()])
    return read(filters, value, zone)


def term_text(key: str, value: str) -> str:
    """Return a term of an expression; values with spaces are quoted."""
    return f'{key}:"{value}"' if any(map(str.isspace, value)) else f"{key}:{value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A parsed expression: the filter, and the problems of invalid terms, which are ignored."""

    filters: SessionFilter
    problems: Sequence[str]


def expression_read(text: str, filters: SessionFilter, zone: tzinfo = UTC) -> Expression:
    """Parse an expression and add its conditions to the filter. Days are those of the time zone."""
    words, problems = [], []
    for key, quoted, bare in _TERM.findall(text):
        value = quoted or bare
        if not key and (alone := _BARE_KEY.fullmatch(bare)):
            key, value = alone[1], ""
        if key.lower() in MESSAGE_KEYS and (value or text.rstrip().endswith(bare)):
            problems.append(f"“{key}:” selects messages. Use it on the Search page.")
            continue
        if key and value and (meant := _misspelt(key)):
            problems.append(f"Unknown filter “{key}:”. Did you mean {meant}:?")
            continue
        try:
            changed = term_read(key, value, filters, zone)
        except InvalidTerm as error:
            problems.append(str(error))
            continue
        if changed is None:
            words.append(f"{key}:{value}" if key else value)
        else:
            filters = changed
    return Expression(filters=replace(filters, text=" ".join(words)), problems=problems)


def size_read(text: str) -> int:
    """Parse a number such as 50000, 50,000, 50k or 1.2M. Raises `InvalidTerm`."""
    match = _SIZE.fullmatch(text.replace(",", "").strip())
    if match is None:
        raise InvalidTerm("Invalid number. Examples: 50000, 50k, 1.2M")
    return int(min(float(match[1]) * _UNITS[match[2].lower()], _MOST))


def _figure(key: str) -> _Reader:
    def read(filters: SessionFilter, value: str, _zone: tzinfo) -> SessionFilter:
        at_most = value.startswith("<")
        amount = value.lstrip("<>=$")
        number = _dollars(amount) if key == "cost" else size_read(amount)
        bound = Bound(column=FIGURES[key], at_most=at_most, value=number)
        return replace(filters, bounds=(*filters.bounds, bound))

    return read


def _dollars(text: str) -> int:
    try:
        amount = Decimal(text.lstrip("$").replace(",", ""))
        return int(min(amount, _MOST_DOLLARS) * 1_000_000)
    except (ArithmeticError, ValueError):
        raise InvalidTerm("Invalid amount. Example: cost:>1.50") from None


def _health(filters: SessionFilter, value: str, _zone: tzinfo) -> SessionFilter:
    grades = frozenset(value.upper().replace(",", ""))
    if not grades or not grades <= _GRADES:
        raise InvalidTerm("Invalid grade. Grades are A, B, C, D and F. Example: health:C,D")
    return replace(filters, grades=grades)


def flag_read(value: str, key: str) -> bool:
    """Parse yes or no. Raises `InvalidTerm`."""
    if value.lower() not in {"yes", "no"}:
        raise InvalidTerm(f"Invalid value. Use {key}:yes or {key}:no")
    return value.lower() == "yes"


def _misspelt(key: str) -> str:
    """Return the term that a key resembles, or "" if it is just a word before a colon."""
    close = get_close_matches(key.lower(), HINTS, n=1, cutoff=0.75)
    return close[0] if close and close[0] != key.lower() else ""


def _active(filters: SessionFilter, value: str, zone: tzinfo) -> SessionFilter:
    if recent := _RECENT.fullmatch(value.lower()):
        start = timezone.now() - timedelta(hours=int(recent[1]) * _HOURS[recent[2]])
        return replace(filters, active_from=start)
    if value.lower() == "today":
        value = timezone.now().astimezone(zone).date().isoformat()
    first, dots, last = value.partition("..")
    last = last if dots else first
    try:
        earliest = first_moment(date.fromisoformat(first), zone) if first else None
        latest = last_moment(date.fromisoformat(last), zone) if last else None
    except ValueError:
        raise InvalidTerm("Invalid date. Examples: active:7d, active:2026-03-01..2026-03-05") from None
    return replace(filters, active_from=earliest, active_to=latest)


_READERS: Mapping[str, _Reader] = {
    "active": _active,
    "agent": lambda filters, value, _zone: replace(filters, agent=value),
    "model": lambda filters, value, _zone: replace(filters, model=value),
    "tag": lambda filters, value, _zone: replace(filters, tags=(*filters.tags, value)),
    "health": _health,
    "compacted": lambda filters, value, _zone: replace(filters, compacted=flag_read(value, "compacted")),
    "subagents": lambda filters, value, _zone: replace(filters, sub_agents=flag_read(value, "subagents")),
    **{key: _figure(key) for key in FIGURES},
}

_EXAMPLES: Mapping[str, str] = {
    "active": "7d",
    "agent": "reader",
    "model": "claude-sonnet-5-5",
    "tag": "nightly",
    "health": "C,D",
    "compacted": "yes",
    "subagents": "yes",
    "peak": ">50k",
    "last": ">50k",
    "turns": ">100",
    "cost": ">1.50",
    "billed": ">1M",
}

#: Terms with a hint about their values, for suggestions.
HINTS: Mapping[str, str] = {
    "agent": "name",
    "model": "name",
    "tag": "tag",
    "peak": ">50k tokens",
    "last": ">50k tokens",
    "turns": ">100",
    "cost": ">1.50 dollars",
    "billed": ">1M tokens in total",
    "health": "C,D,F",
    "compacted": "yes or no",
    "active": "7d, today or 2026-03-01..2026-03-05",
    "subagents": "yes or no",
}
METADATA_HINT = "key:value of the metadata"
assert HINTS.keys() == _READERS.keys() == _EXAMPLES.keys()
