"""Observations that can contradict memory items: values, tools in use, missing files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

#: Families of alternative tools: a project that uses one of them does not use the others.
FAMILIES: tuple[frozenset[str], ...] = (
    frozenset({"pytest", "unittest", "nose"}),
    frozenset({"jest", "vitest", "mocha"}),
    frozenset({"npm", "yarn", "pnpm", "bun"}),
    frozenset({"pip", "poetry", "uv", "pipenv", "conda"}),
    frozenset({"make", "just", "mise"}),
    frozenset({"gradle", "maven", "mvn"}),
)
_FAMILY = {name: family for family in FAMILIES for name in family}

_ASSIGNMENT = re.compile(
    r"(?P<name>[A-Za-z_][\w.-]{2,60})[\"'`]?\s*(?:=|:=|:|\bis now\b|\bis set to\b|\bis\b)\s*[\"'`]?"
    r"(?P<value>-?\d+(?:\.\d+)*\w{0,4}|true|false|on|off|yes|no|null|none|[A-Za-z][\w./-]{1,60})[\"'`]?(?=[\s,;.)\]}]|$)",
    re.IGNORECASE,
)
#: Words that look like names in sentences, but are not assigned in files.
_WORDS = frozenset({"it", "this", "that", "there", "which", "what", "note", "framework", "answer", "reason"})
_USED = re.compile(r"^(?:python[\d.]*\s+-m\s+|npx\s+)?(?P<tool>[\w.-]+)")

#: Maximum number of lines of a file to search for values, and of characters of a line.
_MAX_LINES, _LONGEST_LINE = 2_000, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A fact shown by a tool's result, or a new task from the user."""

    turn: int
    tool: str = ""  #: a tool of a family that ran successfully
    missing: str = ""  #: a path that no longer exists
    name: str = ""  #: a name …
    value: str = ""  #: … that has this value
    before: str = ""  #: … and had this one before, if the edit shows it
    path: str = ""  #: … in this file
    passing: str = ""  #: a test that passes
    task: str = ""  #: the user's new task


def tools_in(command_segments: Iterator[str], turn: int) -> Iterator[Observation]:
    """Yield the tools of known families that a command ran."""
    for segment in command_segments:
        found = _USED.match(segment)
        if found and found["tool"] in _FAMILY:
            yield Observation(turn=turn, tool=found["tool"])


def names_in(items: Iterable[str]) -> frozenset[str]:
    """Return the names to which items assign a value."""
    return frozenset(match["name"] for item in items for match in _ASSIGNMENT.finditer(item)) - _WORDS


def values_in(text: str, names: Collection[str]) -> dict[str, str]:
    """Return the values that a text assigns to any of `names`. The last assignment applies."""
    found: dict[str, str] = {}
    for line in text.splitlines()[:_MAX_LINES] if any(name in text for name in names) else ():
        if len(line) <= _LONGEST_LINE and any(name in line for name in names):
            values = {match["name"]: match["value"] for match in _ASSIGNMENT.finditer(line)}
            found.update((name, value) for name, value in values.items() if name in names)
    return found


def contradiction(item: str, observation: Observation) -> str | None:
    """Return why an observation makes an item stale, "" if it confirms it, or None if they are unrelated."""
    if observation.tool:
        return _tool_contradiction(item, observation)
    if observation.missing:
        return (
            f"{observation.missing} has been missing since turn {observation.turn}"
            if _mentions(item, observation.missing)
            else None
        )
    if observation.passing:
        named = _mentions(item, observation.passing.rpartition("::")[2].partition(" ")[0])
        return f"it has passed since turn {observation.turn}" if named else None
    if observation.name:
        return _value_contradiction(item, observation)
    return None


def _tool_contradiction(item: str, observation: Observation) -> str | None:
    rivals = _FAMILY[observation.tool] - {observation.tool}
    named = {name for name in (*rivals, observation.tool) if _mentions(item, name)}
    if named == {observation.tool}:
        return ""
    if named and observation.tool not in named:
        return f"{observation.tool} has been in use since turn {observation.turn}"
    return None


def _value_contradiction(item: str, observation: Observation) -> str | None:
    """Check an item that assigns a value to the observed name.

    It is contradicted only if it has the value that the edit removed or mentions the file, because other
    files may use the same name.
    """
    for match in _ASSIGNMENT.finditer(item):
        if match["name"] != observation.name:
            continue
        stated = match["value"]
        if stated == observation.value:
            return ""
        if stated == observation.before or _mentions(item, observation.path.rpartition("/")[2]):
            return f"{observation.name} has been {observation.value} since turn {observation.turn}"
    return None


def _mentions(item: str, name: str) -> bool:
    """Return whether an item mentions a name as a separate word."""
    if len(name) < 2:
        return False
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", item) is not None
