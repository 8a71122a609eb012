"""What was seen, as far as it can contradict what somebody wrote: values, tools in use, files gone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

#: Alternatives: who uses one of a family does not use the others.
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
#: Names that a sentence uses and no file assigns.
_WORDS = frozenset({"it", "this", "that", "there", "which", "what", "note", "framework", "answer", "reason"})
_USED = re.compile(r"^(?:python[\d.]*\s+-m\s+|npx\s+)?(?P<tool>[\w.-]+)")

#: Lines of a file that are looked at for values, and the length of one (characters).
_MAX_LINES, _LONGEST_LINE = 2_000, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Something that a tool's result shows to be so now."""

    turn: int
    tool: str = ""  #: a command of a family was run, and worked
    gone: str = ""  #: a path that is no longer there
    name: str = ""  #: something that has a value …
    value: str = ""  #: … this one
    before: str = ""  #: and had this one until now, where the edit says so
    path: str = ""  #: in this file
    passing: str = ""  #: a test that passes


def tools_in(command_segments: Iterator[str], turn: int) -> Iterator[Observation]:
    """The tools of a family that a command ran."""
    for segment in command_segments:
        found = _USED.match(segment)
        if found and found["tool"] in _FAMILY:
            yield Observation(turn=turn, tool=found["tool"])


def names_in(items: Iterable[str]) -> frozenset[str]:
    """The names that items say a value of."""
    return frozenset(match["name"] for item in items for match in _ASSIGNMENT.finditer(item)) - _WORDS


def values_in(text: str, names: Collection[str]) -> dict[str, str]:
    """The values that the lines of a text assign to any of `names`; the last of a name counts."""
    found: dict[str, str] = {}
    for line in text.splitlines()[:_MAX_LINES] if any(name in text for name in names) else ():
        if len(line) <= _LONGEST_LINE and any(name in line for name in names):
            values = {match["name"]: match["value"] for match in _ASSIGNMENT.finditer(line)}
            found.update((name, value) for name, value in values.items() if name in names)
    return found


def contradiction(item: str, sighting: Observation) -> str | None:
    """Why an item no longer holds after a sighting; "" where the sighting confirms it, None where it says
    nothing about it."""
    if sighting.tool:
        return _other_tool(item, sighting)
    if sighting.gone:
        return f"{sighting.gone} is gone since turn {sighting.turn}" if _names(item, sighting.gone) else None
    if sighting.passing:
        named = _names(item, sighting.passing.rpartition("::")[2].partition(" ")[0])
        return f"it passes since turn {sighting.turn}" if named else None
    if sighting.name:
        return _other_value(item, sighting)
    return None


def _other_tool(item: str, sighting: Observation) -> str | None:
    rivals = _FAMILY[sighting.tool] - {sighting.tool}
    named = {name for name in (*rivals, sighting.tool) if _names(item, name)}
    if named == {sighting.tool}:
        return ""
    if named and sighting.tool not in named:
        return f"{sighting.tool} is in use since turn {sighting.turn}"
    return None


def _other_value(item: str, sighting: Observation) -> str | None:
    """An item that says `name = value`. It must hold the value that the edit took out, or name the file:
    another one may use the name for something else."""
    for match in _ASSIGNMENT.finditer(item):
        if match["name"] != sighting.name:
            continue
        told = match["value"]
        if told == sighting.value:
            return ""
        if told == sighting.before or _names(item, sighting.path.rpartition("/")[2]):
            return f"{sighting.name} is {sighting.value} since turn {sighting.turn}"
    return None


def _names(item: str, name: str) -> bool:
    """Whether an item mentions a name as a word of its own."""
    if len(name) < 2:
        return False
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", item) is not None
